"""The demo's Makefile, small: killed in the middle it goes on, and its summary holds what the README promises."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from rlvr_cli.tiny.problems import generate

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture
def make(tmp_path) -> list[str]:
    evaluation = tmp_path / "eval.jsonl"
    evaluation.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in list(generate("eval"))[::8]))
    return [
        *("make", "-f", str(REPOSITORY / "pipelines" / "demo.mk"), f"RLVR={sys.executable} -m rlvr_cli"),
        *(f"PYTHON={sys.executable}", f"RUN={tmp_path}/run", f"EVAL={evaluation}"),
        *("STEPS=2", "BATCH=12", "SAMPLES=4"),
    ]


def test_a_killed_demo_goes_on_to_its_summary(make, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
    run = tmp_path / "run"
    first = subprocess.Popen(
        make, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (run / "step-000" / ".rollouts.jsonl.partial").exists():
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert (run / "step-000" / "problems.jsonl").exists()
    finished = {path: path.stat().st_mtime_ns for path in run.glob("*/problems.jsonl")}

    done = subprocess.run(make, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert all(path.stat().st_mtime_ns == made for path, made in finished.items())  # nothing was made twice
    summary = orjson.loads((run / "summary.json").read_bytes())
    assert set(summary) == {"before", "after", "steps"}
    for bucket, figures in summary["before"].items():
        assert bucket in ("easy", "medium", "hard")
        assert figures["n"] == summary["after"][bucket]["n"]
        assert 0 <= figures["pass_at_1"] <= 1
    assert [step["step"] for step in summary["steps"]] == [0, 1]
    for number, step in enumerate(summary["steps"]):
        records = [orjson.loads(line) for line in (run / f"step-00{number}" / "scored.jsonl").read_bytes().splitlines()]
        assert len(records) == 12 * 4
        assert step["tokens_generated"] == sum(len(record["completion_token_ids"]) for record in records)
        assert step["zero_advantage_share"] >= step["all_wrong"] + step["all_right"] - 1e-9
        assert step["seconds"] > 0
    assert b"pass@1 on held-out problems" in done.stdout

    again = subprocess.run(make, env=environment, capture_output=True, check=False)
    assert again.returncode == 0
    assert b"rollout" not in again.stdout.split(b"pass@1")[0]  # all is there already
