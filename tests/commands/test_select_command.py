"""`rlvr select` as people type it."""

import json
import subprocess
import sys

import pytest


def rlvr(*arguments):
    call = [sys.executable, "-m", "rlvr_cli", *map(str, arguments)]
    return subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def records(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps({"problem_id": name, "prompt": f"{name}?"}) + "\n" for name in "abcdef"))
    return path


@pytest.fixture
def stats(tmp_path):
    folder = tmp_path / "stats"
    folder.mkdir()
    for step, rows in enumerate([{"a": 4, "b": 0}, {"a": 8, "c": 3}]):
        text = [
            json.dumps({"problem_id": name, "n": 8, "n_correct": c, "policy_step": step}) for name, c in rows.items()
        ]
        (folder / f"{step}.jsonl").write_text("\n".join(text) + "\n")
    return folder


def test_frontier_is_the_default_and_reads_all_stats(problems, stats):
    done = rlvr("select", problems, "--stats", stats, "--step", 2, "--batch", 6)
    assert done.returncode == 0, done.stderr
    reasons = {record["problem_id"]: record["select_reason"] for record in records(done.stdout)}
    assert next(iter(reasons)) == "c"
    assert reasons["c"] == "frontier: last group mixed at step 1 (3/8)"
    assert list(reasons)[-2:] == ["b", "a"]
    assert reasons["a"] == "frontier: last tried at step 1"
    assert "6 problems for step 2: 3 untried, 2 last tried, 1 last group mixed" in done.stderr


def test_stats_may_be_repeated(problems, stats):
    shown = [stats / "0.jsonl", "--stats", stats / "1.jsonl"]
    repeated = rlvr("select", problems, "--stats", *shown, "--step", 2, "--batch", 3)
    folder = rlvr("select", problems, "--stats", stats, "--step", 2, "--batch", 3)
    assert repeated.stdout == folder.stdout


def test_uniform_steps_make_up_an_epoch(problems, tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    picked = []
    for step in (0, 1):
        call = ["select", problems, "--method", "uniform", "--step", step, "--batch", 3, "--seed", 7]
        picked += records(rlvr(*call, "--metrics", metrics).stdout)
    assert sorted(record["problem_id"] for record in picked) == list("abcdef")
    assert {record["select_reason"] for record in picked} == {"uniform: epoch 0"}
    assert [line["selected"] for line in records(metrics.read_text())] == [3, 3]


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (["--step", "3", "--batch", "2"], "no --stats at step 3: every problem counts as untried"),
        (["--batch", "100"], "--batch is 100 and there are 6 problems: all of them are chosen"),
    ],
)
def test_what_may_be_a_mistake_is_said(problems, options, warning):
    done = rlvr("select", problems, *options)
    assert done.returncode == 0
    assert f"warning: {warning}" in done.stderr


def test_uniform_says_that_it_does_not_look_at_stats(problems, stats):
    done = rlvr("select", problems, "--method", "uniform", "--stats", stats, "--batch", 2)
    assert "warning: --method uniform does not look at --stats" in done.stderr


def test_duplicates_are_refused_with_the_remedy(problems):
    problems.write_text(problems.read_text() + '{"problem_id": "b", "prompt": "b?"}\n')
    done = rlvr("select", problems)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{problems}:7: problem_id b stands at {problems}:2 already; run rlvr convert --drop-dup" in done.stderr


def test_scored_records_are_no_statistics(problems, tmp_path):
    path = tmp_path / "scored.jsonl"
    path.write_text('{"problem_id": "a", "reward": 1.0}\n')
    done = rlvr("select", problems, "--stats", path)
    assert done.returncode == 1
    assert f"{path}:1: n is missing; give the output of rlvr bucketize" in done.stderr


@pytest.mark.parametrize("options", [["--step", "-1"], ["--batch", "0"], ["--method", "best"]])
def test_wrong_usage(problems, options):
    assert rlvr("select", problems, *options).returncode == 2


def test_rows_of_statistics_are_no_problems(tmp_path):
    rows = tmp_path / "stats.jsonl"
    rows.write_text(json.dumps({"problem_id": "a", "prompt": "a?", "n": 8, "n_correct": 3}) + "\n")
    done = rlvr("select", rows)
    assert done.returncode == 1
    assert (
        done.stderr == f"rlvr select: {rows}:1: is a row of statistics; give it as --stats, and the problems as input\n"
    )
