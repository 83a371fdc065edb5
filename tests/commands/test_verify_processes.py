"""`rlvr verify` and its worker processes, seen from outside: nothing is left of them, whatever ends the run."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import rlvr_cli

JUDGE = """
def judge(record):
    does = record["completion"]
    if does == "hang":
        while True: pass
    return does == record["answer"]
"""


@pytest.fixture
def acting(tmp_path):
    (tmp_path / "acting.py").write_text(JUDGE)
    return ["verify", "--verifier", "acting:judge"]


def rlvr(*arguments, cwd):
    call = [sys.executable, "-m", "rlvr_cli", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(Path(rlvr_cli.__file__).parents[1])}
    return subprocess.run(call, stdin=subprocess.DEVNULL, cwd=cwd, env=env, capture_output=True, text=True)


def lines(*completions):
    return "".join(
        json.dumps({"prompt": "6 * 7?", "answer": "42", "rollout_id": str(place), "completion": text}) + "\n"
        for place, text in enumerate(completions)
    )


def test_what_a_verdict_depends_on_is_part_of_what_a_resumed_run_compares(tmp_path, acting):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(lines("42", "42", "hang", "42"))
    call = [*acting, source, "-o", output, "--workers", 1]
    with running(*call, "--deadline", 60, cwd=tmp_path) as run:
        until(lambda: len((tmp_path / ".out.jsonl.partial").read_text().splitlines()) == 3)
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 130
    changed = rlvr(*call, "--deadline", 1, "--resume", cwd=tmp_path)
    assert "was made with other options" in changed.stderr
    (tmp_path / "acting.py").write_text(JUDGE.replace("while True: pass", "return 1"))
    assert "was made with other options" in rlvr(*call, "--deadline", 60, "--resume", cwd=tmp_path).stderr
    (tmp_path / "acting.py").write_text(JUDGE)
    with running(*call, "--deadline", 60, "--resume", cwd=tmp_path) as run:  # the number of workers may change
        until(lambda: processes_of(run))
        assert len((tmp_path / ".out.jsonl.partial").read_text().splitlines()) == 3
        run.send_signal(signal.SIGINT)
        run.wait(20)


def until(condition, seconds=20):
    """Wait for it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError("it did not come")


@contextmanager
def running(*arguments, cwd, **streams):
    """The command, running, in a process group of its own as a shell has it."""
    env = {**os.environ, "PYTHONPATH": str(Path(rlvr_cli.__file__).parents[1])}
    call = [sys.executable, "-m", "rlvr_cli", *map(str, arguments)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
    with subprocess.Popen(call, cwd=cwd, env=env, process_group=0, **streams) as run:
        try:
            yield run
        finally:
            run.kill()


def processes_of(run):
    """Its worker processes that live."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(run.pid) and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_reader_that_leaves_leaves_no_process(tmp_path, acting):
    """As in `rlvr verify | head -1`, with answers that hang behind the first."""
    source = tmp_path / "in.jsonl"
    source.write_text(lines("42", "42", "hang", "hang", *["42"] * 5000))
    arguments = [*acting, source, "--workers", 2, "--deadline", 3]
    with running(*arguments, cwd=tmp_path, stdout=subprocess.PIPE) as run:
        assert run.stdout.readline()
        workers = until(lambda: processes_of(run))
        run.stdout.close()
        assert run.wait(30) == 0
        assert run.stderr.read() == b""
    assert not any(map(lives, workers))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process(tmp_path, acting, number):
    source = tmp_path / "in.jsonl"
    source.write_text(lines(*["hang"] * 4))
    with running(*acting, source, "--deadline", 60, "--workers", 2, cwd=tmp_path) as run:
        workers = until(lambda: len(found := processes_of(run)) == 2 and found)
        time.sleep(0.3)
        os.killpg(run.pid, number)  # as the terminal does: the whole group
        assert run.wait(20) == 130
        assert run.stderr.read() == b"rlvr verify: interrupted\n"
    assert not any(map(lives, workers))


def test_a_killed_run_leaves_no_process_after_a_moment(tmp_path, acting):
    source = tmp_path / "in.jsonl"
    source.write_text(lines(*["hang"] * 4))
    with running(*acting, source, "--deadline", 1.5, "--workers", 2, cwd=tmp_path) as run:
        workers = until(lambda: len(found := processes_of(run)) == 2 and found)
        run.kill()
    until(lambda: not any(map(lives, workers)))
