"""`rlvr find-pivots` as people type it, on rollouts that the embedded policy sampled."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from typing import get_args

import pytest
import typer

from rlvr_cli.cli import app
from rlvr_cli.exploration.pivots import METHODS
from rlvr_cli.exploration.recoverability import Logistic


def shell(*arguments, stdin=None):
    done = subprocess.run(
        [sys.executable, "-m", "rlvr_cli", *map(str, arguments)],
        input=stdin,
        stdin=None if stdin else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done


@dataclass
class Done:
    stdout: str
    stderr: str


@pytest.fixture
def rlvr(capfd):
    """A call of the program in this process, which costs no start of Python."""

    def call(*arguments, code=0):
        with pytest.raises(SystemExit) as ended:
            typer.main.get_command(app).main(list(map(str, arguments)), prog_name="rlvr")
        done = Done(*capfd.readouterr())
        assert ended.value.code == code, done.stderr
        return done

    return call


@pytest.fixture
def file(tmp_path):
    """A file of these lines."""

    def write(lines):
        path = tmp_path / "in.jsonl"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def records(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Ten problems of the embedded set `deep`, four rollouts each; most fail."""
    folder = tmp_path_factory.mktemp("pivots")
    chosen = shell("select", "tiny:deep", "--method", "uniform", "--batch", 10)
    sampled = shell("rollout", "-", "--samples", 4, "--max-tokens", 150, stdin=chosen.stdout)
    shell("verify", "-", "-o", folder / "scored.jsonl", stdin=sampled.stdout)
    return folder / "scored.jsonl"


@pytest.fixture(scope="module")
def failures(scored):
    return {r["rollout_id"]: r for r in records(scored.read_text()) if r["reward"] <= 0}


@pytest.fixture
def history(tmp_path):
    """Branches of 400 past pivots: the deeper, the less likely to succeed."""
    generator = random.Random(0)
    lines = []
    for number in range(400):
        depth = generator.choice([0.2, 0.4, 0.6, 0.8])
        success = generator.random() < 1 / (1 + 2.718 ** (6 * depth - 3))
        branch = {"stream": "branch", "pivot_id": str(number), "depth": depth, "policy_step": 0}
        lines += [json.dumps({**branch, "verdict": "wrong", "reward": reward}) for reward in (0.0, float(success))]
    lines.append(json.dumps({"stream": "main", "reward": 1.0}))
    random.Random(1).shuffle(lines)  # the branches of a pivot lie in different files
    (tmp_path / "history").mkdir()
    for number in range(2):
        (tmp_path / "history" / f"{number}.jsonl").write_text("\n".join(lines[number::2]) + "\n")
    return tmp_path / "history"


def test_each_failed_rollout_gives_a_pivot(rlvr, scored, failures, tmp_path):
    done = rlvr("find-pivots", scored, "--metrics", tmp_path / "metrics.jsonl")
    pivots = records(done.stdout)
    assert [pivot["rollout_id"] for pivot in pivots] == list(failures)
    assert len(failures) > 20
    for pivot in pivots:
        parent = failures[pivot["rollout_id"]]
        assert {name: pivot[name] for name in parent} == parent
        assert pivot["prefix_len"] % 50 == 0
        assert pivot["prefix_len"] < len(parent["completion_token_ids"])
        states = -(-len(parent["completion_token_ids"]) // 50) + 1
        assert pivot["depth"] == pytest.approx((pivot["prefix_len"] / 50 + 1) / states)
        assert pivot["utility"] == pytest.approx(pivot["depth"] ** 2)
    [figures] = records((tmp_path / "metrics.jsonl").read_text())
    assert (figures["failures"], figures["pivots"], figures["rollouts"]) == (len(failures), len(pivots), 40)
    assert figures["failures_without_candidate"] == 0
    assert sum(figures["pivots_by_depth"]) == len(pivots)
    assert figures["depth_mean"] == pytest.approx(sum(pivot["depth"] for pivot in pivots) / len(pivots))
    assert (figures.get("slope"), figures.get("intercept"), figures["observations"]) == (None, None, 0)
    assert f"40 rollouts, {len(failures)} failures, {figures['candidates']} candidates, {len(pivots)}" in done.stderr
    assert f"fifths from the root on: {', '.join(map(str, figures['pivots_by_depth']))}; mean 0." in done.stderr
    assert "recoverability: P = 1 until more than 10 observations hold both outcomes (0 observations" in done.stderr


def test_history_says_what_can_be_saved(rlvr, scored, history, tmp_path):
    done = rlvr("find-pivots", scored, "--history", history, "--metrics", tmp_path / "metrics.jsonl")
    [figures] = records((tmp_path / "metrics.jsonl").read_text())
    assert figures["slope"] == pytest.approx(-6, abs=1.5)
    assert figures["intercept"] == pytest.approx(3, abs=0.8)
    assert (figures["observations"], 100 < figures["observations_success"] < 300) == (400, True)
    said = f"slope {figures['slope']:.3f}, intercept {figures['intercept']:.3f} from 400 observations"
    assert f"recoverability: {said}, {figures['observations_success']} of them a success" in done.stderr
    chance = Logistic(figures["slope"], figures["intercept"])
    for pivot in records(done.stdout):
        assert pivot["recoverability"] == pytest.approx(chance(pivot["depth"]))
        assert pivot["utility"] == pytest.approx(pivot["recoverability"] * pivot["depth"] ** 2)
    files = [history / "0.jsonl", "--history", history / "1.jsonl"]
    assert rlvr("find-pivots", scored, "--history", *files).stdout == done.stdout
    assert rlvr("find-pivots", scored, "--history", f"{history}/*.jsonl").stdout == done.stdout


def test_a_derivation_step_is_a_sentence(rlvr, scored):
    pivots = records(rlvr("find-pivots", scored, "--segments", "sentences", "--pivots-per-rollout", 100).stdout)
    assert len(pivots) > 100
    for pivot in pivots:
        words = pivot["completion"].split()[: pivot["prefix_len"]]
        assert words[-1:] in ([], ["."])  # the root, or behind a step
        at = pivot["completion_token_ids"][pivot["prefix_len"] - 1 : pivot["prefix_len"]]
        assert at in ([], [6])


@pytest.mark.parametrize("segments", ["tokens:20", "sentences", "lines", "parts:5"])
def test_no_pivot_lies_at_the_end_token_or_without_room(rlvr, scored, segments):
    pivots = records(rlvr("find-pivots", scored, "--segments", segments, "--pivots-per-rollout", 100).stdout)
    for pivot in pivots:
        stopped = pivot["finish_reason"] == "stop"
        assert pivot["prefix_len"] < min(len(pivot["completion_token_ids"]) - stopped, pivot["max_tokens"])
        assert 0 < pivot["depth"] < 1
    assert {pivot["finish_reason"] for pivot in pivots} == {"stop", "length"}
    assert len({(pivot["rollout_id"], pivot["prefix_len"]) for pivot in pivots}) == len(pivots)


def test_methods_and_gamma(rlvr, scored, history):
    def utilities(*options):
        pivots = records(rlvr("find-pivots", scored, "--history", history, *options).stdout)
        return [(pivot["utility"], pivot["recoverability"], pivot["depth"]) for pivot in pivots]

    assert {u for u, _, _ in utilities("--method", "random")} == {1.0}
    assert all(u == pytest.approx(p) for u, p, _ in utilities("--method", "recoverability"))
    assert all(u == pytest.approx(x**2) for u, _, x in utilities("--method", "depth"))
    assert all(u == pytest.approx(x**5) for u, _, x in utilities("--method", "depth", "--gamma", 5))
    assert all(u == pytest.approx(p) for u, p, _ in utilities("--gamma", 0))


def test_an_external_score(rlvr, file, scored, failures):
    lines = [
        json.dumps({**record, "prm": [float(place == 9) for place in range(len(record["logprobs"]))]})
        for record in failures.values()
    ]
    done = rlvr("find-pivots", file(lines), "--segments", "tokens:10", "--score-column", "prm")
    pivots = records(done.stdout)
    assert {(pivot["prefix_len"], pivot["utility"]) for pivot in pivots} == {(10, 1.0)}
    without = rlvr("find-pivots", file(lines), "--segments", "tokens:20", "--score-column", "prm")
    assert without.stdout == ""
    assert f"0 pivots; {len(lines)} failures without a candidate" in without.stderr


def test_the_budget_of_a_group_and_the_order_of_the_input(rlvr, file, scored, failures):
    whole = records(rlvr("find-pivots", scored, "--per-group", 2, "--seed", 5).stdout)
    groups = {}
    for pivot in whole:
        groups.setdefault(pivot["group_id"], []).append(pivot["pivot_id"])
    assert set(groups) == {record["group_id"] for record in failures.values()}
    assert max(map(len, groups.values())) == 2
    lines = scored.read_text().splitlines()
    random.Random(2).shuffle(lines)
    shuffled = records(rlvr("find-pivots", file(lines), "--per-group", 2, "--seed", 5).stdout)
    assert sorted(pivot["pivot_id"] for pivot in shuffled) == sorted(pivot["pivot_id"] for pivot in whole)
    parts = [rlvr("find-pivots", scored, "--per-group", 2, "--seed", 5, "--shard", f"{n}/2").stdout for n in (0, 1)]
    assert sorted(p["pivot_id"] for part in parts for p in records(part)) == sorted(p["pivot_id"] for p in whole)
    assert records(rlvr("find-pivots", scored, "--per-group", 2, "--seed", 6).stdout) != whole


def test_what_was_left_out_is_said(rlvr, file, scored, failures):
    first = next(iter(failures.values()))
    unjudged = {name: value for name, value in first.items() if name != "reward"} | {"verdict": "error"}
    unjudged["rollout_id"] = "another"
    lines = [json.dumps(record) for record in (first, {**first, "stream": "branch"}, unjudged)]
    done = rlvr("find-pivots", file(lines))
    assert len(records(done.stdout)) == 1
    assert "1 branch rollouts left out" in done.stderr
    assert "warning: 1 rollouts could not be judged" in done.stderr
    assert "warning: 1 groups are smaller than their group_size" in done.stderr
    assert "2 rollouts, 1 failures" in done.stderr
    assert "larger" not in done.stderr


def test_a_group_that_is_too_large_is_said_and_no_error(rlvr, file, failures, tmp_path):
    """As two files give it, sampled with different --samples."""
    first = next(iter(failures.values()))
    lines = [json.dumps({**first, "rollout_id": f"r{index}", "group_size": 2}) for index in range(5)]
    for options in ([], ["--per-group", "1"]):
        done = rlvr("find-pivots", file(lines), *options, "--metrics", tmp_path / "metrics.jsonl")
        assert "warning: 1 groups are larger than their group_size; were they sampled twice" in done.stderr
        assert "smaller" not in done.stderr
        figures = records((tmp_path / "metrics.jsonl").read_text())[-1]
        assert (figures["groups_oversized"], figures["groups_unfinished"]) == (1, 0)


def test_the_methods_are_those_that_there_are():
    program = typer.main.get_command(app).get_command(None, "find-pivots")
    [method] = [option for option in program.params if option.name == "method"]
    assert get_args(method.type_descriptor.annotation) == METHODS


def test_a_higher_threshold_makes_more_rollouts_fail(rlvr, scored, history, tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    done = rlvr("find-pivots", scored, "--threshold", 1, "--history", history, "--metrics", metrics)
    assert len(records(done.stdout)) == 40
    [figures] = records(metrics.read_text())
    assert (figures["observations"], figures["observations_success"]) == (400, 0)  # and no branch was a success


def test_bad_records_name_their_place_and_can_be_set_aside(rlvr, scored, failures, tmp_path):
    lines = [json.dumps({**record, "completion": "1 2 3"}) for record in list(failures.values())[:2]]
    path = tmp_path / "scored.jsonl"
    path.write_text("\n".join([*lines, scored.read_text()]))
    done = rlvr("find-pivots", path, "--segments", "lines", code=1)
    assert done.stderr.startswith(f"rlvr find-pivots: {path}:1: completion is not the text of completion_token_ids")
    done = rlvr("find-pivots", path, "--segments", "lines", "--on-error", "skip")
    assert len(records(done.stdout)) == len(failures)
    assert "2 bad records set aside" in done.stderr
    twice = rlvr("find-pivots", scored, scored, code=1)
    assert "is a file named twice?" in twice.stderr
    once = rlvr("find-pivots", scored, "--per-group", 2).stdout
    twice = rlvr("find-pivots", scored, scored, "--per-group", 2, "--on-error", "skip")
    assert twice.stdout == once
    assert "40 bad records set aside" in twice.stderr
    assert "groups are" not in twice.stderr


def test_a_history_that_is_none(rlvr, scored, tmp_path):
    done = rlvr("find-pivots", scored, "--history", tmp_path / "gone.jsonl", code=1)
    assert done.stderr == f"rlvr find-pivots: {tmp_path}/gone.jsonl: no such file or directory; check the name\n"
    path = tmp_path / "branches.jsonl"
    path.write_text('{"stream": "branch", "pivot_id": "p", "depth": 0.5, "policy_step": 0}\n')
    done = rlvr("find-pivots", scored, "--history", path, code=1)
    assert done.stderr == f"rlvr find-pivots: {path}:1: verdict is missing; run rlvr verify on it first\n"
    path.write_text('{"stream": "branch", "pivot_id": "p", "policy_step": 0, "verdict": "wrong", "reward": 0}\n')
    done = rlvr("find-pivots", scored, "--history", path, code=1)
    assert "1: depth is missing: its pivot had none; leave such branches out of --history" in done.stderr
    path.write_text(next(line for line in scored.read_text().splitlines()) + "\n")
    done = rlvr("find-pivots", scored, "--history", path)  # main rollouts are no observations
    assert "P = 1 until more than 10 observations hold both outcomes (0 observations" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--segments", "words"], "--segments is words, expected tokens:N, sentences, lines or parts:N"),
        (["--method", "random", "--score-column", "prm"], "--score-column takes the place of --method"),
        (["--method", "random", "--gamma", "1"], "--gamma weighs depth in --method utility and depth"),
        (["--method", "recoverability", "--gamma", "1"], "--gamma weighs depth"),
        (["--score-column", "prm", "--gamma", "1"], "--gamma weighs depth"),
        (["--gamma", "-1"], "--gamma is -1.0, expected a number from 0 on"),
        (["--gamma", "inf"], "--gamma is inf"),
        (["--threshold", "nan"], "--threshold is nan, expected a number"),
        (["--pivots-per-rollout", "0"], "--pivots-per-rollout is 0, expected 1 or more"),
        (["--per-group", "-1"], "--per-group is -1, expected 0 or more"),
        (["--method", "best"], "best"),
    ],
)
def test_wrong_usage(rlvr, scored, options, said):
    assert said in rlvr("find-pivots", scored, *options, code=2).stderr


def test_a_model_without_a_tokenizer(rlvr, scored, tmp_path):
    done = rlvr("find-pivots", scored, "--segments", "sentences", "--model", tmp_path, code=1)
    assert done.stderr.startswith(f"rlvr find-pivots: model {tmp_path}: has no tokenizer.json")
    assert rlvr("find-pivots", scored, "--model", tmp_path).stdout  # tokens need none
    done = rlvr("find-pivots", scored, "--segments", "lines", "--model", "nowhere", code=1)
    assert done.stderr.startswith("rlvr find-pivots: model nowhere: is no directory; give `tiny` or a local directory")


def test_pivots_go_to_parquet_and_back(rlvr, scored, tmp_path):
    written = rlvr("find-pivots", scored, "-o", tmp_path / "pivots.parquet", "--resume")
    assert written.stdout == ""
    assert records(rlvr("convert", tmp_path / "pivots.parquet").stdout) == records(rlvr("find-pivots", scored).stdout)


def test_nothing_heavy_is_imported(scored):
    code = "import sys, atexit\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    code += f"sys.argv[1:] = ['find-pivots', {str(scored)!r}, '--segments', 'sentences']\n"
    code += "from rlvr_cli.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert {"rlvr_cli.stages.find_pivots", "tokenizers"} <= loaded  # it did its work, and this is the list
    assert not {"torch", "transformers", "numpy", "pyarrow", "sklearn"} & loaded
