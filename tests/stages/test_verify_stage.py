"""The stage `verify`: rollouts in, scored rollouts out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr_cli.errors import RecordError, UsageError, UserError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.stages import verify as stage
from rlvr_cli.stages.verify import Slowest, check_rollout_to_judge, verify
from rlvr_cli.streams.waiting import Line
from rlvr_cli.verifiers.pool import Settings


def rollout(**columns):
    return Record(
        {"prompt": "6 * 7?", "answer": "42", "verifier": "gsm8k", "completion": "#### 42", **columns}, "r.jsonl:5"
    )


def one(record, verifier=None):
    (scored,) = verify([record], verifier)
    return scored


def test_a_scored_record_is_the_record_and_its_judgement():
    record = rollout(colour="blue")
    scored = one(record)
    judged = {key: scored[key] for key in scored if key not in record}
    assert {key: scored[key] for key in record} == record
    assert scored.where == "r.jsonl:5"
    assert (judged["verdict"], judged["reward"], judged["extracted"]) == ("correct", 1.0, "42")
    assert judged["verifier_detail"]["verifier"] == "gsm8k"
    assert judged["verifier_detail"]["version"].startswith("rlvr ")
    check_columns(scored)


def test_an_earlier_judgement_goes():
    stale = {"verdict": "correct", "reward": 1.0, "extracted": "41", "verifier_detail": {"old": True}}
    scored = one(rollout(completion="", **stale))
    assert (scored["verdict"], scored["reward"]) == ("no_answer", 0.0)
    assert "extracted" not in scored
    assert "old" not in scored["verifier_detail"]


def test_the_argument_overrides_and_the_column_stays():
    scored = one(rollout(completion=r"\boxed{Paris}", answer="Paris"), "exact")
    assert (scored["verdict"], scored["verifier"]) == ("correct", "gsm8k")
    assert scored["verifier_detail"]["verifier"] == "exact"


def test_records_come_one_by_one_in_order():
    records = iter([rollout(completion=f"#### {number}", verifier="exact") for number in (41, 42, 43)])
    stream = verify(records)
    assert next(stream)["extracted"] == "41"
    assert next(records)["completion"] == "#### 42"  # nothing was read ahead
    assert [scored["extracted"] for scored in stream] == ["43"]


def test_a_rollout_that_the_engine_failed_has_no_reward():
    record = rollout(finish_reason="error")
    del record["completion"]
    check_rollout_to_judge(record)
    scored = one(record)
    assert scored["verdict"] == "error"
    assert "reward" not in scored
    assert scored["verifier_detail"]["reason"] == "the engine gave no completion"


def test_an_exception_in_a_verifier_is_an_error_and_no_zero(monkeypatch):
    def broken(record):
        raise KeyError("gone")

    monkeypatch.setattr(stage, "_load_quick", lambda name: broken)
    scored = one(rollout())
    assert scored["verdict"] == "error"
    assert "reward" not in scored
    assert "KeyError" in scored["verifier_detail"]["reason"]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"completion": None}, "completion is missing; run rlvr rollout on it first"),
        ({"completion": 42}, "completion is 42, expected a string; run rlvr rollout on it first"),
        ({"verifier": None}, r"verifier is missing; name one with --verifier"),
        ({"verifier": "maths"}, r"verifier: no verifier 'maths'; there are boxed"),
        ({"verifier": "os:getcwd"}, "your own code is named by --verifier os:getcwd only"),
        ({"answer": None}, "answer is missing"),
        ({"answer": 42}, "answer is 42, expected a string"),
        ({"finish_reason": "tired"}, 'finish_reason is "tired", expected one of stop, length, error'),
    ],
)
def test_what_cannot_be_judged_is_refused_with_its_place(columns, says):
    record = Record({key: value for key, value in rollout(**columns).items() if value is not None}, "r.jsonl:5")
    with pytest.raises(RecordError, match=f"r.jsonl:5: .*{says}"):
        check_rollout_to_judge(record)


def test_a_record_does_not_choose_which_code_runs():
    with pytest.raises(RecordError, match="your own code"):
        one(rollout(verifier="os:getcwd"))


def test_a_stale_judgement_of_the_wrong_type_is_no_fault():
    check_rollout_to_judge(rollout(reward="yes", verdict="fine"))


def test_an_override_is_checked_in_its_place():
    check_rollout_to_judge(rollout(verifier="maths"), "exact")
    with pytest.raises(UsageError):
        check_rollout_to_judge(rollout(), "maths")


def test_the_lists_of_a_rollout_are_checked_too():
    with pytest.raises(RecordError, match=r"r.jsonl:5: completion_token_ids is \[1,-2\], expected a list of token ids"):
        check_rollout_to_judge(rollout(completion_token_ids=[1, -2]))


def test_nothing_heavy_is_imported_for_a_light_verifier():
    code = (
        "import sys; from rlvr_cli.records import Record; from rlvr_cli.stages.verify import verify;"
        "list(verify([Record({'completion': 'x', 'answer': 'x', 'verifier': 'exact'})]));"
        "print([m for m in ('torch', 'numpy', 'sympy', 'math_verify', 'pyarrow', 'typer') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# What follows goes through worker processes.

JUDGE = """
import time
def judge(record):
    does, _, rest = record["completion"].partition(" ")
    if does == "sleep": time.sleep(float(rest))
    if does == "hang":
        while True: pass
    return {"reward": 1.0, "extracted": record["completion"], "columns": sorted(record)}
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "acting.py").write_text(JUDGE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "acting:judge"
    sys.modules.pop("acting", None)


def acting(*completions):
    return [Record({"completion": text}, f"r:{place}") for place, text in enumerate(completions, 1)]


def children():
    """The processes that this one has started and that are still there."""
    mine = str(os.getpid())
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == mine:
            found.append(status.parent.name)
    return found


def test_order_is_kept_whatever_each_takes(module):
    texts = [f"sleep {0.05 * (number % 3)}" if number % 4 == 0 else f"{number}" for number in range(60)]
    scored = list(verify(acting(*texts), module, Settings(workers=3)))
    assert [record["extracted"] for record in scored] == texts


def test_what_is_certain_at_once_waits_for_what_is_not(module, monkeypatch):
    from rlvr_cli.verifiers.judgement import correct

    monkeypatch.setattr(stage, "_load_quick", lambda name: lambda it: correct("q") if it["completion"] == "q" else None)
    texts = ["q", "sleep 0.2", "q", "x", "q"]
    stream = verify(acting(*texts), module, Settings(workers=2))
    assert [record["extracted"] for record in stream] == texts


def test_a_judge_of_your_own_sees_all_columns_and_ours_no_lists(module):
    from rlvr_cli.verifiers.pool import Task

    lists = {"completion_token_ids": [1], "prompt_token_ids": [2], "logprobs": [0.5]}
    (scored,) = verify([Record({"completion": "x", **lists})], module)
    assert scored["verifier_detail"]["columns"] == sorted(["completion", *lists])
    *_, columns = Task("math", rollout(**lists, rel_tol=0.1), 1.0).sent()
    assert columns == rollout(rel_tol=0.1)


def test_the_reader_does_not_run_ahead_of_the_workers(module):
    """With the only worker at a record that hangs, no more is read than the queue holds."""
    read = 0

    def source():
        nonlocal read
        for record in acting("hang", *["x"] * 3000):
            read += 1
            yield record

    stream = verify(source(), module, Settings(workers=1, deadline=0.5))
    assert next(stream)["verdict"] == "timeout"
    assert read <= 200
    assert [scored["verdict"] for scored in stream] == ["correct"] * 3000


def test_behind_a_record_that_hangs_the_others_are_judged_and_wait_in_a_file(module, monkeypatch):
    lines = []

    def small(ready):
        lines.append(Line(ready, held=200_000))
        return lines[0]

    monkeypatch.setattr(stage, "Line", small)
    stream = verify(acting("hang", *["x"] * 3000), module, Settings(workers=2, deadline=1.5))
    assert next(stream)["verdict"] == "timeout"
    (line,) = lines
    assert line._spool._out > 2000
    assert line._weight < 400_000  # of 3 MB
    assert [scored["verdict"] for scored in stream] == ["correct"] * 3000


def test_memory_does_not_grow_with_the_input(tmp_path):
    """Two hundred thousand records through the stage, one in fifty through the pool; peak memory by the system."""
    (tmp_path / "plain.py").write_text("def judge(record): return 1")
    code = """
import resource, sys
from rlvr_cli.records import Record
from rlvr_cli.stages import verify as stage
from rlvr_cli.verifiers.judgement import correct
from rlvr_cli.verifiers.pool import Settings
stage._load_quick = lambda name: lambda record: None if record["place"] % 50 == 0 else correct("x")
def records(count):
    for place in range(count):
        yield Record({"completion": "x" * 200, "place": place}, f"f:{place}")
def peak(count):
    assert sum(1 for _ in stage.verify(records(count), "plain:judge", Settings(workers=2))) == count
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak(20_000)
print(peak(200_000) - before)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(stage.__file__).parents[2])])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20_000  # KiB; the records alone are 100 MiB


def test_a_generator_that_is_left_early_leaves_no_process(module):
    before = set(children())
    stream = verify(acting("x", "sleep 60", *["hang"] * 5), module, Settings(workers=2, deadline=60))
    assert next(stream)["extracted"] == "x"
    assert set(children()) - before
    stream.close()
    assert not set(children()) - before


def test_what_was_read_before_a_bad_record_is_judged_first(module):
    def source():
        yield from acting("sleep 0.2", "x")
        raise RecordError("r:3: is no record")

    stream = verify(source(), module)
    assert [next(stream)["extracted"] for _ in range(2)] == ["sleep 0.2", "x"]
    with pytest.raises(RecordError, match="r:3"):
        next(stream)


def test_the_slowest_are_known(module):
    slowest = Slowest(2)
    list(verify(acting("x", "sleep 0.3", "x", "sleep 0.6", "sleep 0.1"), module, Settings(workers=2), slowest))
    assert [(where, name) for _, where, name in slowest.over(0.2)] == [("r:4", module), ("r:2", module)]
    assert slowest.over(0.2)[0][0] >= 0.6
    assert slowest.over(5) == []


def test_a_program_that_judges_nothing_ends_the_run(tmp_path):
    program = tmp_path / "mute.py"
    program.write_text("import sys\nfor line in sys.stdin: print('not a number', flush=True)\n")
    stream = verify(acting(*["x"] * 100), f"command:{sys.executable} {program}", Settings(workers=1))
    with pytest.raises(UserError, match=r"r:20: command:.* has judged none of the last 20 records; the last: .*failed"):
        list(stream)
