"""The worker pool, with real processes that hang, crash and eat memory."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

import rlvr_cli
from rlvr_cli.errors import UserError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import pool as pools
from rlvr_cli.verifiers.pool import Pool, Settings, Task, cores

JUDGE = """
import ctypes, os, re, signal, sys, time, pathlib
seen = 0
def judge(record):
    global seen
    seen += 1
    does = record["completion"]
    if does == "spin":
        while True: pass
    if does == "sleep":
        time.sleep(600)
    if does == "backtrack":
        re.fullmatch(r"(a|a)*b", "a" * 64)
    if does == "big":
        return 10**10**8 % 7
    if does == "stubborn":
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        while True: pass
    if does == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if does == "swallow":
        while True:
            try:
                while True: time.sleep(1)
            except BaseException: pass
    if does == "eat":
        kept = []
        while True: kept.append(bytearray(1 << 24))
    if does == "leave":
        os._exit(3)
    if does == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "crash":
        ctypes.string_at(0)
    if does == "deaf":
        os.closerange(3, 256)
    if does == "noise":
        os.write(max(int(name) for name in os.listdir("/proc/self/fd") if is_socket(name)), b"x" * 99)
    if does == "exit": sys.exit(0)
    if does == "interrupt": raise KeyboardInterrupt
    if does == "base": raise BaseException("odd")
    if does == "error": raise ValueError("a" * 9999)
    if does == "print":
        print("noise", flush=True)
        os.write(1, b"noise")
        return 1
    if does == "fork and stay":
        child = os.fork()
        if child == 0: time.sleep(600)
        return {"reward": 1.0, "pid": child}
    if does == "fork and come back":
        os.fork()
        return 1
    if does == "pid": return {"reward": 1.0, "pid": os.getpid()}
    if does == "seen": return {"reward": 1.0, "seen": seen}
    if does == "grab":
        global grabbed
        grabbed = bytearray(150 << 20)
        return 1
    if does == "pause": time.sleep(0.3)
    return float(does == "4")

def is_socket(name):
    try: return os.readlink("/proc/self/fd/" + name).startswith("socket")
    except OSError: return False
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "trying.py").write_text(JUDGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("trying", None)


def tasks_of(completions, deadline=1.0):
    return [
        Task("trying:judge", Record({"completion": it}, f"r:{number}"), deadline)
        for number, it in enumerate(completions)
    ]


def run(tasks, **settings):
    """Judge all tasks; the pids of all processes that were there."""
    pids = set()
    with Pool(Settings(**settings)) as pool:
        for task in tasks:
            pool.submit(task)
        while any(task.judgement is None for task in tasks):
            pool.step(wait=True)
            pids |= {worker.process.pid for worker in pool._workers}
    return pids


def judgements(completions, deadline=1.0, **settings):
    tasks = tasks_of(completions, deadline)
    run(tasks, **{"workers": 2, **settings})
    return [task.judgement for task in tasks]


def verdicts(completions, **settings):
    return [it.verdict for it in judgements(completions, **settings)]


def is_there(pid):
    """Whether a process lives: it exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone_within(seconds, pids):
    until = time.monotonic() + seconds
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_there, pids))


def test_it_judges():
    assert verdicts(["4", "5", "4"]) == ["correct", "wrong", "correct"]


def among_others(does, **settings):
    """The judgements of the records that do these, each with three harmless ones around it, which must be right."""
    found = judgements(["4", *[it for one in does for it in (one, "5", "4")]], **settings)
    assert [it.verdict for it in (found[0], *found[2::3], *found[3::3])] == [
        "correct",
        *["wrong"] * len(does),
        *["correct"] * len(does),
    ]
    return dict(zip(does, found[1::3], strict=True))


def test_what_hangs_is_killed_at_its_deadline_and_costs_itself_alone():
    does = ["spin", "sleep", "backtrack", "big", "stubborn", "stop", "swallow"]
    for it in among_others(does, deadline=0.7, workers=4).values():
        assert (it.verdict, it.reward, it.detail) == ("timeout", 0.0, {"reason": "not judged within 0.7 s"})


def test_what_kills_its_worker_costs_itself_alone():
    says = {
        "eat": "the judging process ran out of the 256 MiB of memory that it may have",
        "leave": "the judging process ended with exit code 3",
        "kill": "the judging process was killed by SIGKILL",
        "crash": "the judging process was killed by SIGSEGV",
        "deaf": "the judging process ",
    }
    if Path("/proc/self/fd").exists():  # it finds the socket there
        says["noise"] = "the judging process wrote to the pool's socket"
    for does, it in among_others(list(says), deadline=20, memory=256).items():
        assert (it.verdict, it.reward) == ("timeout", 0.0)
        assert it.detail["reason"].startswith(says[does])


def test_what_raises_is_an_error_whatever_it_raises():
    for it in among_others(["exit", "interrupt", "base", "error"]).values():
        assert (it.verdict, it.reward) == ("error", None)
        assert len(it.detail["reason"]) < 600


def test_a_child_that_a_judge_forks_changes_nothing_and_is_gone_afterwards():
    found = judgements(["fork and stay", "4", "fork and come back", "5", "4"])
    assert [it.verdict for it in found] == ["correct", "correct", "correct", "wrong", "correct"]
    assert gone_within(2, {found[0].detail["pid"]})


def test_what_a_judge_prints_goes_to_standard_error(capfd):
    assert verdicts(["print"]) == ["correct"]
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.count("noise") == 2


def test_no_process_is_left_whatever_ended_the_pool():
    pids = run(tasks_of(["4"] * 10), workers=2)
    assert pids
    assert gone_within(0, pids)
    with pytest.raises(KeyError), Pool(Settings(workers=2)) as pool:
        for task in tasks_of(["4", "sleep", "spin", "4"], deadline=60):
            pool.submit(task)
        until = time.monotonic() + 1
        while time.monotonic() < until:
            pool.step(wait=True)
        pids = {worker.process.pid for worker in pool._workers}
        raise KeyError
    assert len(pids) == 2
    assert gone_within(0, pids)


def test_no_process_starts_before_there_is_work_and_no_more_than_there_is_work_for():
    with Pool(Settings(workers=4)) as pool:
        pool.step(wait=False)
        assert not pool._workers
        pool.submit(tasks_of(["4"])[0])
        pool.step(wait=False)
        assert len(pool._workers) == 1


def test_a_record_that_dies_of_what_others_left_behind_is_tried_again_in_a_fresh_process():
    """The first record keeps 150 of 256 MiB; the second needs 150 too, which is no fault of its own."""
    assert verdicts(["grab", "grab"], workers=1, memory=256) == ["correct", "correct"]


def test_a_slow_record_is_set_aside_and_another_worker_takes_over(monkeypatch):
    monkeypatch.setattr(pools, "SLOW", 0.2)
    tasks = tasks_of(["4"] * 5 + ["spin"] + ["4"] * 60, deadline=2)
    with Pool(Settings(workers=1)) as pool:
        for task in tasks:
            pool.submit(task)
        while sum(task.judgement is None for task in tasks) > 1:
            pool.step(wait=True)
        assert [task.record["completion"] for task in tasks if task.judgement is None] == ["spin"]
        assert len(pool._workers) == 2
        while tasks[5].judgement is None:
            pool.step(wait=True)
        assert len(pool._workers) == 1
    assert tasks[5].judgement.verdict == "timeout"


def test_where_judging_is_slow_as_a_rule_nobody_is_set_aside(monkeypatch):
    monkeypatch.setattr(pools, "SLOW", 0.1)
    monkeypatch.setattr(pools, "QUICK", 0.05)
    assert len(run(tasks_of(["pause"] * 6), workers=2)) == 2


def test_workers_are_renewed(monkeypatch):
    monkeypatch.setattr(pools, "RECYCLED", 3)
    found = judgements(["seen"] * 10, workers=1)
    assert all(it.detail["seen"] <= 3 + pools.LARGEST_CHUNK for it in found)
    tasks = tasks_of(["pid"] * 4)
    monkeypatch.setattr(pools, "LARGEST_CHUNK", 1)
    run(tasks, workers=1)
    pids = [task.judgement.detail["pid"] for task in tasks]
    assert len(set(pids[:3])) == 1
    assert pids[3] != pids[0]


def test_a_verifier_that_cannot_be_loaded_ends_the_run(tmp_path):
    (tmp_path / "trying.py").write_text("raise RuntimeError('no licence')")
    with pytest.raises(UserError, match="verifier trying:judge: no licence"):
        judgements(["4"])


def test_a_verifier_that_kills_processes_when_loaded_ends_the_run(tmp_path):
    (tmp_path / "trying.py").write_text("import os; os._exit(5)")
    with pytest.raises(UserError, match="ended with exit code 5, 3 times before it judged anything"):
        judgements(["4", "4", "4"])


def test_loading_is_charged_to_no_record(tmp_path):
    (tmp_path / "trying.py").write_text("import time; time.sleep(1)\ndef judge(record): return 1")
    assert verdicts(["4"], deadline=0.3) == ["correct"]


def test_a_module_in_the_working_directory_does_not_pass_for_one_of_the_standard_library(tmp_path):
    for name in ("json", "struct", "signal", "orjson"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    source = "import json, sys; sys.path.append('.')\n" + PARENT.replace("does", "4")
    env = {**os.environ, "PYTHONPATH": str(Path(rlvr_cli.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-P", "-c", source], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_big_records_and_judgements_pass_whole(tmp_path):
    text = "ä" * (3 << 20)
    (tmp_path / "trying.py").write_text("def judge(r): return {'reward': 1, 'extracted': r['completion']}")
    found = judgements([text, text, text], deadline=20)
    assert [it.extracted == text for it in found] == [True] * 3


def test_a_workers_own_alarm_ends_a_hung_record_when_the_pool_is_away():
    """A pool that does not look, because its reader waits say, finds the record over its time."""
    (task,) = tasks_of(["spin"], deadline=0.3)
    with Pool(Settings(workers=1)) as pool:
        pool.submit(task)
        until = time.monotonic() + 1
        while time.monotonic() < until and not any(worker.state == "judging" for worker in pool._workers):
            pool.step(wait=True)
        (pid,) = {worker.process.pid for worker in pool._workers}
        assert gone_within(5, {pid})
        pool.step(wait=True)
    assert task.judgement.detail == {"reason": "not judged within 0.3 s"}


def test_a_verdict_that_came_too_late_is_a_timeout_although_nobody_looked():
    (task,) = tasks_of(["pause"], deadline=0.1)
    with Pool(Settings(workers=1)) as pool:
        pool.submit(task)
        until = time.monotonic() + 1
        while time.monotonic() < until and not any(worker.state == "judging" for worker in pool._workers):
            pool.step(wait=True)
        time.sleep(0.6)
        pool.step(wait=True)
    assert task.judgement.verdict == "timeout"


PARENT = """
from rlvr_cli.records import Record
from rlvr_cli.verifiers.pool import Pool, Settings, Task
task = Task("trying:judge", Record({"completion": "does"}), 1.0)
with Pool(Settings(workers=1)) as pool:
    pool.submit(task)
    told = False
    while task.judgement is None:
        pool.step(wait=True)
        if not told and any(worker.state == "judging" for worker in pool._workers):
            import sys; print(pool._workers[0].process.pid, flush=True); told = True
"""


@pytest.mark.parametrize("does", ["backtrack", "sleep"])
def test_a_parent_that_is_killed_leaves_no_process(does, tmp_path):
    source = "import sys; sys.path.append('.')\n" + PARENT.replace("does", does)
    env = {**os.environ, "PYTHONPATH": str(Path(rlvr_cli.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", source], env=env, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert is_there(pid)
        parent.kill()
    assert gone_within(10, {pid})


def test_no_signal_is_touched_in_the_parent():
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    timer = signal.getitimer(signal.ITIMER_REAL)
    verdicts(["4", "spin"], deadline=0.3)
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before
    assert signal.getitimer(signal.ITIMER_REAL) == timer


def test_it_works_outside_the_main_thread():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(verdicts, ["4", "5"]).result(timeout=30) == ["correct", "wrong"]


def test_chunks_follow_the_pace_of_judging():
    tasks = tasks_of(["4"] * 300)
    sent = []
    with Pool(Settings(workers=1)) as pool:
        for task in tasks:
            pool.submit(task)
        while tasks[-1].judgement is None:
            pool.step(wait=True)
            sent.append(sum(task.judgement is None for task in tasks))
    gaps = [before - after for before, after in pairwise(sent)]
    assert max(gaps) > 8  # several judgements a look
    assert all(task.judgement.verdict == "correct" for task in tasks)


def test_a_process_that_cannot_be_started_is_told_of(monkeypatch):
    def refused(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(UserError, match=r"no process can be started, .*unavailable; lower --workers"):
        judgements(["4"])


def test_by_default_there_is_a_worker_for_each_core_that_this_process_may_use():
    assert Pool(Settings())._most == cores()
    if hasattr(os, "sched_setaffinity"):
        code = (
            "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
            "from rlvr_cli.verifiers.pool import cores; print(cores())"
        )
        env = {**os.environ, "PYTHONPATH": str(Path(rlvr_cli.__file__).parents[1])}
        assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True).stdout == b"1\n"
