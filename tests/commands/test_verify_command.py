"""`rlvr verify` as people type it."""

import json
import os
import subprocess
import sys
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
    assert "1 records: 1 correct; accuracy 1.000\n" in done.stderr


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
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(VERIFIERS)


@pytest.mark.parametrize("name", ["maths", "no_such_module:f"])
def test_an_unknown_verifier_is_wrong_usage(name):
    done = rlvr("verify", "--verifier", name, stdin=lines(rollout(42)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rlvr verify: ")
    assert name in done.stderr


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"verifier": "maths"}, "rollouts.jsonl:2: verifier: no verifier 'maths'; there are chain"),
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
