"""A program that judges: command:PROGRAM."""

import sys
import time

import pytest

from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import code_digest, known, load, version

PROGRAM = """
import json, os, sys, time
print("started", file=sys.stderr, flush=True)
count = 0
while line := sys.stdin.readline():
    record = json.loads(line)
    count += 1
    does = record["completion"]
    if does == "die":
        print("no more", file=sys.stderr)
        sys.exit(7)
    if does == "kill": os.kill(os.getpid(), 9)
    if does == "close": os.close(1); time.sleep(60)
    if does == "hush": os.close(1); sys.exit(0)
    if does == "chatter":
        for _ in range(3000): print("x" * 100, file=sys.stderr)
    answer = {
        "text": "yes", "null": "null", "list": "[1]", "minus": "-1", "empty": "", "two": "1\\n1", "nan": "NaN",
        "score": "0.25", "true": "true", "zero": "0", "count": json.dumps({"reward": 1, "count": count}),
        "verdict": '{"verdict": "no_answer"}', "odd": '{"verdict": "fine"}',
        "own": '{"verdict": "error", "reason": "r"}',
        "columns": json.dumps({"reward": 1, "extracted": " ".join(record)}), "long": '"' + "x" * (2 << 20) + '"',
        "big": '{"reward": 1, "length": %d}' % len(record.get("more", "")),
    }.get(does, "1")
    print(answer, flush=True)
print("left", file=sys.stderr, flush=True)
"""


@pytest.fixture
def name(tmp_path):
    (tmp_path / "a judge.py").write_text(PROGRAM)
    return f"command:{sys.executable} '{tmp_path}/a judge.py'"


@pytest.fixture
def judge(name):
    loaded = load(name)
    yield lambda completion, **columns: loaded(Record({"completion": completion, **columns}))
    loaded.leave()


@pytest.mark.parametrize(
    ("does", "verdict", "reward"),
    [
        ("", "correct", 1.0),
        ("score", "correct", 0.25),
        ("true", "correct", 1.0),
        ("zero", "wrong", 0.0),
        ("verdict", "no_answer", 0.0),
        ("own", "error", None),
    ],
)
def test_what_it_may_answer(judge, does, verdict, reward):
    it = judge(does)
    assert (it.verdict, it.reward) == (verdict, reward)


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("text", "the program failed: "),
        ("null", "returned NoneType"),
        ("list", "returned list"),
        ("minus", "returned reward -1"),
        ("empty", "the program failed: "),
        ("nan", "the program failed: "),
        ("odd", "returned verdict 'fine'"),
        ("two", "it wrote more than one line for a record"),
        ("long", "it wrote a line of more than 1048576 bytes"),
        ("die", "it closed its standard output (exit code 7); it said: started\nno more"),
        ("kill", "(killed by signal 9)"),
        ("close", "it closed its standard output"),
    ],
)
def test_anything_else_is_an_error_and_the_next_record_gets_a_new_program(judge, does, says):
    assert judge("count").detail["count"] == 1
    it = judge(does)
    assert (it.verdict, it.reward) == ("error", None)
    assert says in it.detail["reason"]
    assert judge("count").detail["count"] == 1


def test_it_is_kept_running(judge):
    assert [judge("count").detail["count"] for _ in range(5)] == [1, 2, 3, 4, 5]


def test_it_sees_all_columns(judge):
    assert judge("columns", answer="4", logprobs=[0.5]).extracted == "completion answer logprobs"


def test_records_and_chatter_beyond_what_a_pipe_holds(judge):
    """The program writes 300 kB to standard error before it answers, and reads a record of 3 MB."""
    assert judge("big", more="x" * (3 << 20)).detail["length"] == 3 << 20
    assert judge("chatter", more="x" * (3 << 20)).verdict == "correct"


def test_what_it_says_of_itself_is_passed_on_and_its_end_is_awaited(name, capfd):
    from rlvr_cli.verifiers.pool import Pool, Settings, Task

    task = Task(name, Record({"completion": "x"}), 20.0)
    with Pool(Settings(workers=1)) as pool:
        pool.submit(task)
        while task.judgement is None:
            pool.step(wait=True)
    assert task.judgement.verdict == "correct"
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "started\nleft\n")


def test_one_that_hangs_is_killed_with_its_worker(tmp_path):
    from rlvr_cli.verifiers.pool import Pool, Settings, Task

    program = tmp_path / "slow.py"
    program.write_text(
        "import sys\nfor line in sys.stdin:\n    while '\"hang\"' in line: pass\n    print(1, flush=True)\n"
    )
    tasks = [Task(f"command:{sys.executable} {program}", Record({"completion": it}), 1.0) for it in ("x", "hang", "x")]
    with Pool(Settings(workers=1)) as pool:
        for task in tasks:
            pool.submit(task)
        while any(task.judgement is None for task in tasks):
            pool.step(wait=True)
    assert [task.judgement.verdict for task in tasks] == ["correct", "timeout", "correct"]


@pytest.mark.parametrize("name", ["command:", "command:no-such-program-here", "command:'open", "command:/etc/passwd"])
def test_what_is_no_program_is_wrong_usage(name):
    with pytest.raises(UsageError, match="verifier command:"):
        load(name)


def test_no_shell_reads_its_words(tmp_path):
    judge = load(f"command:{sys.executable} $(touch {tmp_path}/made); touch {tmp_path}/made")
    assert judge(Record({"completion": "x"})).verdict == "error"
    assert not (tmp_path / "made").exists()


def test_a_record_cannot_name_it():
    with pytest.raises(UsageError):
        known("command")
    with pytest.raises(UsageError):
        known("command:ls")


def test_its_version_changes_with_its_file(tmp_path):
    program = tmp_path / "judge.py"
    name = f"command:{sys.executable} {program}"
    program.write_text("1")
    before = version(name), code_digest(name)
    assert (version(name), code_digest(name)) == before
    program.write_text("2")
    assert version(name) != before[0]
    assert code_digest(name) != before[1]


def test_a_line_that_nobody_asked_for_is_no_answer_to_the_next_record(tmp_path):
    program = tmp_path / "twice.py"
    program.write_text(
        "import sys, time\nfor line in sys.stdin:\n"
        "    print(1, flush=True)\n    time.sleep(0.05)\n    print(1, flush=True)\n"
    )
    judge = load(f"command:{sys.executable} {program}")
    assert judge(Record({"completion": "x"})).verdict == "correct"
    time.sleep(0.3)
    it = judge(Record({"completion": "y"}))
    assert it.verdict == "error"
    assert "a line before it was asked" in it.detail["reason"]
