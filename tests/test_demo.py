"""The demo's Makefile, small: killed in the middle it goes on, its files are what the same stages give by hand, and
its summary holds what the README promises."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from rlvr_cli.records import problem_id
from rlvr_cli.tiny.problems import generate

REPOSITORY = Path(__file__).parents[1]
RLVR = f"{sys.executable} -m rlvr_cli"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
SIZE = {"STEPS": 2, "BATCH": 12, "SAMPLES": 4, "CHILDREN": 8}


def read(path: Path) -> list[dict]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def make(run: Path, evaluation: Path, *more: str) -> list[str]:
    settings = {"RLVR": RLVR, "PYTHON": sys.executable, "RUN": run, "EVAL": evaluation, **SIZE}
    return [
        *("make", "-f", str(REPOSITORY / "pipelines" / "demo.mk")),
        *(f"{name}={value}" for name, value in settings.items()),
        *more,
    ]


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    """The directory of a run that was killed in its first rollout and then made whole, and how that ended."""
    directory = tmp_path_factory.mktemp("demo")
    evaluation, run = directory / "eval.jsonl", directory / "run"
    evaluation.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in list(generate("eval"))[::8]))
    first = subprocess.Popen(
        make(run, evaluation),
        env=ENVIRONMENT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not (run / "step-000" / ".rollouts.jsonl.partial").exists():
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    made = (run / "step-000" / "problems.jsonl").stat().st_mtime_ns
    done = subprocess.run(make(run, evaluation), env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert (run / "step-000" / "problems.jsonl").stat().st_mtime_ns == made  # nothing was made twice
    return run, done


def test_the_summary_holds_the_evaluation(demo):
    run, done = demo
    summary = orjson.loads((run / "summary.json").read_bytes())
    assert set(summary) == {"before", "after", "steps", "generations"}
    for bucket, figures in summary["before"].items():
        assert bucket in ("easy", "medium", "hard")
        assert figures["n"] == summary["after"][bucket]["n"]
        assert 0 <= figures["pass_at_1"] <= 1
    assert b"pass@1 on held-out problems" in done.stdout


def test_the_summary_counts_both_streams_of_each_step(demo):
    run, _ = demo
    summary = orjson.loads((run / "summary.json").read_bytes())
    assert [step["step"] for step in summary["steps"]] == [0, 1]
    for number, step in enumerate(summary["steps"]):
        records = read(run / f"step-00{number}" / "scored.jsonl")
        assert len(records) == 12 * 4
        assert step["tokens_generated"] == sum(len(record["completion_token_ids"]) for record in records)
        assert step["zero_advantage_share"] >= step["all_wrong"] + step["all_right"] - 1e-9
        branches = read(run / f"step-00{number}" / "branches-scored.jsonl")
        assert {record["stream"] for record in branches} == {"branch"}
        assert step["branch"]["groups"] == len({record["pivot_id"] for record in branches}) > 0
        new = sum(len(record["completion_token_ids"]) - record["prefix_len"] for record in branches)
        assert step["branch"]["tokens_generated"] == new
        assert step["seconds"] > 0


def test_the_summary_follows_the_generations(demo):
    run, done = demo
    summary = orjson.loads((run / "summary.json").read_bytes())
    children = read(run / "step-000" / "children.jsonl") + read(run / "step-001" / "children.jsonl")
    assert [step["synthesized"] for step in summary["steps"]] == [8, 8]
    assert sum(row["problems"] for row in summary["generations"]) == len(children)
    tried = {row["problem_id"] for row in read(run / "step-001" / "stats.jsonl")} & {
        row["problem_id"] for row in children
    }
    assert tried  # the batch of the second step holds children of the first
    for row in summary["generations"]:
        assert row["problems"] == row["untried"] + row["too_hard"] + row["in_band"] + row["too_easy"]
    assert sum(row["problems"] - row["untried"] for row in summary["generations"]) == len(tried)
    assert b"synthesized problems, by generation" in done.stdout


def test_every_child_has_its_parent_and_no_child_is_held_out(demo):
    run, _ = demo
    given = {problem_id(record) for name in ("trap", "deep") for record in generate(name)}
    children = read(run / "step-000" / "children.jsonl") + read(run / "step-001" / "children.jsonl")
    ids = [record["problem_id"] for record in children]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & given
    assert {record["parent_id"] for record in children} <= given | set(ids)
    assert {record["root_id"] for record in children} <= given
    held_out = {record["prompt"] for record in generate("eval")}
    assert not {record["prompt"] for record in children} & held_out


def test_a_finished_demo_has_nothing_left_to_do(demo):
    run, _ = demo
    again = subprocess.run(make(run, run.parent / "eval.jsonl"), env=ENVIRONMENT, capture_output=True, check=False)
    assert again.returncode == 0
    assert b"rollout" not in again.stdout.split(b"pass@1")[0]


def test_other_settings_are_refused_where_files_of_a_run_lie(demo):
    run, _ = demo
    other = make(run, run.parent / "eval.jsonl", "SEED=7")
    done = subprocess.run(other, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"was made with PROBLEMS=tiny:trap tiny:deep" in done.stderr


def test_a_deleted_file_is_made_again_with_all_that_depends_on_it(demo):
    run, _ = demo
    command = [*make(run, run.parent / "eval.jsonl"), "--dry-run"]
    (run / "step-001" / "scored.jsonl").rename(run / "moved")
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True)
    (run / "moved").rename(run / "step-001" / "scored.jsonl")
    stages = [line.removeprefix(RLVR).split()[0] for line in done.stdout.decode().splitlines() if line.startswith(RLVR)]
    assert sorted(set(stages)) == [
        "bucketize",
        "find-pivots",
        "resample",
        "rollout",
        "synthesize",
        "train-step",
        "verify",
    ]
    assert stages.count("train-step") == 1


def test_ctrl_c_leaves_a_policy_that_is_in_place(demo):
    run, _ = demo
    card = run / "step-001" / "policy" / "rlvr.json"
    before = card.read_bytes()
    os.utime(card, (1, 1))  # to be made again
    slow = f"RLVR=sleep 20; {RLVR}"
    process = subprocess.Popen(
        make(run, run.parent / "eval.jsonl", slow, str(card)), env=ENVIRONMENT, start_new_session=True
    )
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() != 0
    assert card.read_bytes() == before


BY_HAND = """
rlvr select tiny:trap tiny:deep $RUN/step-000/children.jsonl --step 1 --batch 12 \\
    --mix frontier=0.5,children=0.4,problems=0.1 --stats $RUN/step-000/stats.jsonl |
    rlvr rollout --model $RUN/step-000/policy --samples 4 --max-tokens 200 --batch-size 512 | rlvr verify > scored.jsonl
rlvr find-pivots scored.jsonl --model $RUN/step-000/policy --segments sentences --per-group 1 \\
    --history $RUN/step-000/branches-scored.jsonl |
    rlvr resample --model $RUN/step-000/policy --samples 8 --batch-size 512 | rlvr verify > branches-scored.jsonl
rlvr train-step $RUN/step-000/scored.jsonl $RUN/step-000/branches-scored.jsonl --learning-rate 4e-4 \\
    --mini-batch 128 --micro-tokens 16384 -o policy-1 > /dev/null
rlvr bucketize scored.jsonl > stats.jsonl
rlvr synthesize stats.jsonl --count 8 --known tiny:trap --known tiny:deep --known $RUN/step-000/children.jsonl \\
    --avoid $RUN/../eval.jsonl > children.jsonl
"""


def test_a_step_by_hand_gives_the_same_records(demo, tmp_path):
    run, _ = demo
    typed = BY_HAND.replace("rlvr ", f"{RLVR} ")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-ec", typed],
        env={**ENVIRONMENT, "RUN": str(run)},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    for name in ("scored.jsonl", "branches-scored.jsonl", "stats.jsonl", "children.jsonl"):
        assert (tmp_path / name).read_bytes() == (run / "step-001" / name).read_bytes(), name
    ids = [
        orjson.loads((policy / "rlvr.json").read_bytes())["policy_id"]
        for policy in (run / "step-000/policy", tmp_path / "policy-1")
    ]
    assert ids[0] == ids[1]
