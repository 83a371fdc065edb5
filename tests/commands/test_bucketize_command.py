"""`rlvr bucketize` as people type it."""

import json
import subprocess
import sys

import pytest


def rlvr(*arguments, stdin=None):
    call = [sys.executable, "-m", "rlvr_cli", *map(str, arguments)]
    return subprocess.run(
        call, input=stdin, stdin=None if stdin else subprocess.DEVNULL, capture_output=True, text=True
    )


def lines(problem, rewards, policy="p0", step=0, **columns):
    rollout = {"problem_id": problem, "prompt": "?", "policy_id": policy, "policy_step": step, "temperature": 1.0}
    return "".join(
        json.dumps(
            {**rollout, "group_id": f"{policy}{problem}", "sample_index": i, "verdict": "x", "reward": r, **columns}
            | {"verdict": "error" if r is None else "correct" if r else "wrong"}
        )
        + "\n"
        for i, r in enumerate(rewards)
    )


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "one.jsonl").write_text(lines("a", [0, 0]) + lines("b", [0, 1]))
    (tmp_path / "base" / "two.jsonl").write_text(lines("c", [1, 1]))
    later = [lines(name, [1, 1], policy="p4", step=4) for name in "abcd"]
    (tmp_path / "scored.jsonl").write_text("".join(later) + lines("a", [1], policy="p4", step=4, stream="branch"))
    return tmp_path


def test_rows_on_stdout_table_on_stderr_figures_in_metrics(runs):
    done = rlvr("bucketize", runs / "scored.jsonl", "--base", runs / "base", "--metrics", runs / "metrics.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["problem_id"], row["bucket"], row["pass_rate"]) for row in rows] == [
        ("a", "hard", 1.0),
        ("b", "medium", 1.0),
        ("c", "easy", 1.0),
        ("d", "unknown", 1.0),
    ]
    assert done.stderr.count("pass@1/number of problems") == 1
    assert "1 branch rollouts left out" in done.stderr
    assert "1 rows have the bucket unknown" in done.stderr
    figures = json.loads((runs / "metrics.jsonl").read_text())
    assert (figures["rollouts"], figures["branches"], figures["duplicates"], figures["rows"]) == (8, 1, 0, 4)
    [policy] = figures["policies"]
    assert policy["buckets"]["hard"] == {"n": 1, "pass_at_1": 1.0}
    assert (policy["zero_advantage_share"], policy["all_right"]) == (1.0, 1.0)


def test_base_may_be_repeated_and_be_a_glob(runs):
    both = [
        rlvr("bucketize", runs / "scored.jsonl", *(part for path in paths for part in ("--base", path)))
        for paths in ([runs / "base" / "*.jsonl"], [runs / "base" / "one.jsonl", runs / "base" / "two.jsonl"])
    ]
    assert both[0].stdout == both[1].stdout
    assert '"hard"' in both[0].stdout


def test_statistics_go_to_a_named_file(runs):
    done = rlvr("bucketize", runs / "scored.jsonl", "-o", runs / "stats.parquet")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    back = rlvr("convert", runs / "stats.parquet")
    assert [json.loads(line)["n"] for line in back.stdout.splitlines()] == [2, 2, 2, 2]


def test_what_was_left_out_is_said(runs):
    text = lines("a", [1, None, 0], group_size=4)
    done = rlvr("bucketize", "-", stdin=text + text)
    assert json.loads(done.stdout)["n"] == 2
    assert "1 rollouts could not be judged" in done.stderr
    assert "3 rollouts were there more than once" in done.stderr
    assert "1 groups are smaller than their group_size" in done.stderr


def test_unscored_rollouts_are_refused_and_can_be_set_aside(runs):
    path = runs / "mixed.jsonl"
    path.write_text('{"problem_id": "a", "completion": "x"}\n' + lines("a", [1, 0]))
    done = rlvr("bucketize", path)
    assert done.returncode == 1
    assert f"{path}:1: reward is missing; run rlvr verify on it first" in done.stderr
    done = rlvr("bucketize", path, "--on-error", "skip")
    assert done.returncode == 0
    assert json.loads(done.stdout)["n"] == 2


def test_a_bad_base_is_refused(runs):
    done = rlvr("bucketize", runs / "scored.jsonl", "--base", runs / "nowhere.jsonl")
    assert done.returncode == 1
    assert "nowhere.jsonl" in done.stderr
