"""`rlvr verify` as people type it."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rlvr_cli
from rlvr_cli.verifiers import VERIFIERS


def rlvr(*arguments, stdin=None, cwd=None):
    call = [sys.executable, "-m", "rlvr_cli", *map(str, arguments)]
    source = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    env = {**os.environ, "PYTHONPATH": str(Path(rlvr_cli.__file__).parents[1])}
    return subprocess.run(call, **source, cwd=cwd, env=env, capture_output=True, text=True)


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def rollout(guess, group="g", **columns):
    return {
        "problem_id": "p",
        "prompt": "6 * 7?",
        "answer": "42",
        "verifier": "gsm8k",
        "group_id": group,
        "completion": f"#### {guess}",
        "finish_reason": "stop",
        **columns,
    }


def test_in_a_pipe_records_come_out_scored_in_order_and_the_summary_is_said():
    done = rlvr("verify", stdin=lines(rollout(42), rollout(41), rollout("")))
    assert done.returncode == 0, done.stderr
    assert [(it["verdict"], it["reward"]) for it in records(done.stdout)] == [
        ("correct", 1.0),
        ("wrong", 0.0),
        ("no_answer", 0.0),
    ]
    assert "3 records: 1 correct, 1 wrong, 1 no_answer; accuracy 0.333" in done.stderr


def test_the_summary_tells_the_share_of_groups_without_a_signal(tmp_path):
    failed = {"finish_reason": "error"}
    groups = [
        rollout(42, "mixed"),
        rollout(41, "mixed"),
        rollout(41, "all wrong"),
        rollout(40, "all wrong"),
        rollout(42, "all right"),
        rollout(42, "all right"),
        rollout(42, "right but for a rollout without a reward"),
        rollout(42, "right but for a rollout without a reward"),
        rollout("", "right but for a rollout without a reward", **failed),
        rollout(41, "one judged"),
        rollout("", "one judged", **failed),
    ]
    metrics = tmp_path / "metrics.jsonl"
    done = rlvr("verify", "--metrics", metrics, stdin=lines(*groups))
    assert done.returncode == 0, done.stderr
    assert "80% of 5 groups have no signal (20% all wrong, 40% all right)" in done.stderr
    (figures,) = records(metrics.read_text())
    assert figures["groups"] == 5
    signals = ("mixed", "all_wrong", "all_right", "unjudged")
    assert {name: figures[f"groups_{name}"] for name in signals} == dict(zip(signals, (1, 1, 2, 1), strict=True))
    assert (figures["verdict_correct"], figures["verdict_wrong"], figures["verdict_error"]) == (5, 4, 2)
    assert figures["accuracy"] == 5 / 9  # of those judged


def test_without_groups_nothing_is_said_of_them():
    record = rollout(42)
    del record["group_id"]
    done = rlvr("verify", stdin=lines(record))
    assert re.search(r"1 records: 1 correct; accuracy 1.000; [\d,]+ records/s\n", done.stderr)
    assert "groups" not in done.stderr


def test_verifier_overrides():
    done = rlvr("verify", "--verifier", "exact", stdin=lines(rollout(42, completion="42", answer="forty")))
    (scored,) = records(done.stdout)
    assert (scored["verdict"], scored["verifier_detail"]["verifier"]) == ("wrong", "exact")


def test_a_users_own_verifier_lies_in_the_working_directory(tmp_path):
    (tmp_path / "terse.py").write_text("def score(record):\n    print('noise')\n    return 0.5\n")
    done = rlvr("verify", "--verifier", "terse:score", stdin=lines(rollout(42)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (scored,) = records(done.stdout)
    assert (scored["verdict"], scored["reward"]) == ("correct", 0.5)


def test_an_earlier_judgement_is_made_again():
    (scored,) = records(rlvr("verify", stdin=lines(rollout(41, verdict="correct", reward=1.0))).stdout)
    assert (scored["verdict"], scored["reward"]) == ("wrong", 0.0)


def test_list_names_every_verifier_in_one_line():
    done = rlvr("verify", "--list")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == [*VERIFIERS, "command:PROGRAM", "module:function"]


@pytest.mark.parametrize("name", ["maths", "no_such_module:f"])
def test_an_unknown_verifier_is_wrong_usage(name):
    done = rlvr("verify", "--verifier", name, stdin=lines(rollout(42)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rlvr verify: ")
    assert name in done.stderr


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"verifier": "maths"}, "rollouts.jsonl:2: verifier: no verifier 'maths'; there are boxed"),
        ({"completion": None}, "rollouts.jsonl:2: completion is missing; run rlvr rollout on it first"),
        ({"answer": "many"}, "rollouts.jsonl:2: answer is 'many', expected a number"),
    ],
)
def test_a_bad_record_stops_the_run_or_is_set_aside(tmp_path, columns, says):
    source, rejects = tmp_path / "rollouts.jsonl", tmp_path / "rejects.jsonl"
    source.write_text(lines(rollout(42), rollout(42, **columns), rollout(41)))
    output = tmp_path / "scored.jsonl"
    done = rlvr("verify", source, "-o", output)
    assert done.returncode == 1
    assert says in done.stderr
    assert not output.exists()
    done = rlvr("verify", source, "-o", output, "--force", "--on-error", "skip", "--rejects", rejects)
    assert done.returncode == 0, done.stderr
    assert [it["verdict"] for it in records(output.read_text())] == ["correct", "wrong"]
    (rejected,) = records(rejects.read_text())
    assert says in f"{rejected['where']}: {rejected['reason']}"


def test_what_looks_wrong_is_said_a_judge_that_fails_and_groups_that_are_short(tmp_path):
    (tmp_path / "mine.py").write_text("def judge(record):\n    return record['no such column']\n")
    given = lines(rollout(42, group="a", group_size=2), rollout(41, group="b", group_size=1))
    done = rlvr("verify", "--verifier", "mine:judge", stdin=given, cwd=tmp_path)
    assert done.returncode == 0
    assert "warning: 2 records could not be judged; the first: <stdin>:1: KeyError: 'no such column'" in done.stderr
    assert "warning: 1 groups are smaller than their group_size" in done.stderr


JUDGE = """
import os, sys, time
def judge(record):
    does = record["completion"]
    if does == "hang":
        while True: pass
    if does == "nap": time.sleep(1.2)
    if does == "eat": bytearray(1 << 40)
    return does == record["answer"]
"""


@pytest.fixture
def acting(tmp_path):
    (tmp_path / "acting.py").write_text(JUDGE)
    return ["verify", "--verifier", "acting:judge"]


def test_hung_and_greedy_answers_cost_themselves_and_are_told_of(tmp_path, acting):
    texts = ["42", "hang", "41", "eat", "nap", "42"]
    given = lines(*[rollout(0, group=text, completion=text) for text in texts])
    metrics = tmp_path / "m.jsonl"
    options = ["--deadline", 2, "--memory", 512, "--workers", 2, "--metrics", metrics]
    done = rlvr(*acting, *options, stdin=given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    scored = records(done.stdout)
    assert [it["completion"] for it in scored] == texts
    assert [it["verdict"] for it in scored] == ["correct", "timeout", "wrong", "timeout", "wrong", "correct"]
    assert scored[1]["verifier_detail"]["reason"] == "not judged within 2 s"
    assert "512 MiB" in scored[3]["verifier_detail"]["reason"]
    assert "warning: 2 records could not be judged in time; the first: <stdin>:2: not judged within 2 s" in done.stderr
    assert re.search(r"slowest: <stdin>:2 \(acting:judge\) 2\.\d s, <stdin>:5 \(acting:judge\) 1\.\d s\n", done.stderr)
    (figures,) = records(metrics.read_text())
    assert [it["where"] for it in figures["slowest"]] == ["<stdin>:2", "<stdin>:5"]
    assert figures["records_per_second"] > 0


def test_the_summary_counts_by_verifier_when_there_are_several(tmp_path):
    metrics = tmp_path / "m.jsonl"
    given = lines(rollout(42), rollout(41, verifier="exact", answer="41"), rollout(41))
    done = rlvr("verify", "--metrics", metrics, stdin=given)
    assert "gsm8k: 2 records: 1 correct, 1 wrong; accuracy 0.500\n" in done.stderr
    assert "exact: 1 record: 1 correct; accuracy 1.000\n" in done.stderr
    (figures,) = records(metrics.read_text())
    assert figures["verifiers"] == {"gsm8k": {"correct": 1, "wrong": 1}, "exact": {"correct": 1}}


def test_a_program_judges(tmp_path):
    (tmp_path / "judge.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'reward': 0.5, 'length': len(json.loads(line)['completion'])}), flush=True)\n"
    )
    name = f"command:{sys.executable} judge.py"
    done = rlvr("verify", "--verifier", name, stdin=lines(rollout(42)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (scored,) = records(done.stdout)
    assert scored["reward"] == 0.5
    assert (scored["verifier_detail"]["verifier"], scored["verifier_detail"]["length"]) == (name, 7)


def test_a_record_cannot_name_a_program():
    done = rlvr("verify", stdin=lines(rollout(42, verifier="command:ls")))
    assert (done.returncode, done.stdout) == (1, "")
    assert "your own code is named by --verifier command:ls only" in done.stderr


def test_compare_tells_what_changed(tmp_path):
    earlier = [
        rollout(42, verdict="correct", reward=1.0),
        rollout(41, verdict="correct", reward=1.0),
        rollout(42, verdict="wrong", reward=0.0),
        rollout(40, verdict="correct", reward=1.0),
        rollout(42, verdict="correct", reward=0.5),
        rollout(42),
        rollout(41, verdict=7, reward="x"),
    ]
    metrics = tmp_path / "m.jsonl"
    done = rlvr("verify", "--compare", "--metrics", metrics, stdin=lines(*earlier))
    assert done.returncode == 0, done.stderr
    assert "4 of 6 earlier verdicts changed, and 1 reward of the same verdict\n" in done.stderr
    assert "  correct -> wrong: 2 (<stdin>:2, <stdin>:4)\n" in done.stderr
    assert "  wrong -> correct: 1 (<stdin>:3)\n" in done.stderr
    (figures,) = records(metrics.read_text())
    assert (figures["compared"], figures["changed_verdicts"], figures["changed_rewards"]) == (6, 4, 1)
    assert figures["changes"] == {"correct -> wrong": 2, "wrong -> correct": 1, "7 -> wrong": 1}
    assert "changed" not in rlvr("verify", stdin=lines(*earlier)).stderr


def test_audit_lists_problems_whose_completions_agree_against_the_answer(tmp_path):
    suspect = tmp_path / "suspect.jsonl"
    given = [rollout(guess, problem_id="bad label") for guess in (41, "41.0", 41, 42, 41)]
    given += [rollout(guess, problem_id="good label") for guess in (42, 41, 42, 42, 41)]
    done = rlvr("verify", "--audit", suspect, stdin=lines(*given))
    assert done.returncode == 0, done.stderr
    (row,) = records(suspect.read_text())
    assert (row["problem_id"], row["answer"], row["agreed"]) == ("bad label", "42", "41")
    assert (row["count"], row["n"], row["share"], row["accuracy"]) == (4, 5, 0.8, 0.2)
    assert f"1 problem with a suspect answer; see {suspect}" in done.stderr


def test_an_audit_is_written_whole_or_not_at_all(tmp_path):
    suspect = tmp_path / "suspect.jsonl"
    suspect.write_text("before\n")
    done = rlvr("verify", "--audit", suspect, stdin=lines(rollout(42)) + "{")
    assert done.returncode == 1
    assert suspect.read_text() == "before\n"
    assert [path.name for path in tmp_path.iterdir()] == ["suspect.jsonl"]
    assert rlvr("verify", "--audit", suspect, stdin=lines(rollout(42))).returncode == 0
    assert suspect.read_text() == ""


def test_an_audit_takes_the_place_of_no_other_file(tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(lines(rollout(42)))
    for name, says in ((source, "is an input"), (output, "and --output name the same file")):
        done = rlvr("verify", source, "-o", output, "--audit", name)
        assert (done.returncode, says in done.stderr) == (2, True)
    assert records(source.read_text()) == [rollout(42)]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--workers", 0),
        ("--deadline", 0),
        ("--deadline", "nan"),
        ("--deadline", "inf"),
        ("--memory", 1),
        ("--code-timeout", -1),
        ("--code-memory", 0),
        ("--code-output", 0),
    ],
)
def test_limits_that_make_no_sense_are_wrong_usage(option, value):
    done = rlvr("verify", option, value, stdin=lines(rollout(42)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rlvr verify: {option} is ")


def test_the_limits_of_code_reach_it(tmp_path):
    program = "```python\nimport time\ndef add(a, b):\n    time.sleep(60)\n```"
    tests = json.dumps({"kind": "assert", "tests": ["assert add(1, 2) == 3"]})
    given = lines(rollout(0, verifier="code", answer=tests, completion=program))
    begun = time.monotonic()
    done = rlvr("verify", "--unsafe-no-sandbox", "--code-timeout", 0.5, "--deadline", 30, stdin=given)
    assert done.returncode == 0, done.stderr
    (scored,) = records(done.stdout)
    assert scored["verdict"] == "timeout"
    assert time.monotonic() - begun < 15
