"""The sandbox itself: what programs cannot do, and that nothing of them is left. The programs are real."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace

import orjson
import pytest
from sandboxes import namespaces_work, options, sleepers, wait_until

from rlvr_cli.errors import UserError
from rlvr_cli.verifiers.sandbox import bubblewrap, cgroups, probe
from rlvr_cli.verifiers.sandbox import session as sessions
from rlvr_cli.verifiers.sandbox.options import Options
from rlvr_cli.verifiers.sandbox.session import SandboxError, Session


@pytest.fixture(scope="module")
def session():
    """One session for programs that are soon done, as a worker has it."""
    kept = Session(options(seconds=10.0, memory=256, output=100_000))
    yield kept
    kept.close()


def values(session, program, *expressions):
    """What the expressions give after the program; of a failure, its kind and text."""
    tests = [{"steps": [["eval", expression]]} for expression in expressions]
    found = {}
    for message in session.run("assert", program, tests):
        content = orjson.loads(message.content)
        found[message.number] = tuple(content) if message.kind == "F" else content["values"][0]
    return [found.get(number) for number in range(len(tests))]


def printed(session, program, *inputs):
    """What a script prints for each input; of a failure, its kind and text."""
    found = {}
    for message in session.run("stdio", program, list(inputs)):
        found[message.number] = tuple(orjson.loads(message.content)) if message.kind == "F" else message.content
    return [found.get(number) for number in range(len(inputs))]


def refused(session, attempt, prelude="import os, socket, ctypes"):
    """Whether an attempt ends in an OSError, or in an AssertionError of its own."""
    program = f"{prelude}\ndef attempt():\n" + "".join(f"    {line}\n" for line in attempt.splitlines())
    (found,) = values(session, program, "attempt()")
    return isinstance(found, tuple) and found[0] == "exception" and found[1].split(":")[0] != "NameError"


def test_the_sandbox_is_used_where_namespaces_work():
    if namespaces_work() or bubblewrap.find():
        assert probe.prepare(Options()).isolation in ("unshare", "bwrap")
    else:
        with pytest.raises(UserError, match="unsafe-no-sandbox"):
            probe.prepare(Options())


def test_a_long_job_for_a_sandbox_that_does_not_come_up(monkeypatch):
    session = Session(options(isolation="unshare"))
    broken = replace(sessions.view(), emptied=("/no/such/directory",))
    monkeypatch.setattr(sessions, "view", lambda: broken)
    with pytest.raises(SandboxError, match=r"no/such/directory|gone"):
        list(session.run("stdio", "print(1)", ["x" * 1_000_000]))
    monkeypatch.undo()
    assert printed(session, "print(1)", "") == [b"1\n"]
    session.close()


def test_isolation_that_does_not_hold_is_refused(monkeypatch):
    assert probe.try_out(Options(isolation="none")) == "a program can see other processes"
    monkeypatch.setattr(probe, "_candidates", lambda: [("none", False)])
    probe._isolation.cache_clear()
    try:
        with pytest.raises(UserError, match=r"none: a program can see other processes.*--unsafe-no-sandbox"):
            probe.prepare(Options())
    finally:
        probe._isolation.cache_clear()
    assert probe.prepare(Options(sandbox=False)).isolation == "none"


def test_a_sandbox_that_does_not_come_up_is_no_programs_fault(monkeypatch):
    session = Session(options(isolation="unshare"))
    broken = replace(sessions.view(), emptied=("/no/such/directory",))
    monkeypatch.setattr(sessions, "view", lambda: broken)
    try:
        with pytest.raises(SandboxError):
            list(session.run("stdio", "print(1)", [""]))
    finally:
        session.close()


@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd')",
        "open('/etc/shadow')",
        "open('/proc/self/status')",
        "open('/proc/sys/kernel/core_pattern', 'a')",
        "os.listdir('/sys')",
        "os.listdir('/home')",
        "open('/tmp/file', 'w')",
        "open('/file', 'w')",
        "open(os.path.join(os.path.dirname(os.__file__), 'json', '__init__.py'), 'a')",
        "os.chmod('/', 0o777)\nopen('/file', 'w')",
        "open('/dev/mem', 'rb')",
        "open('/dev/tty')",
        "os.execv('/bin/sh', ['sh', '-c', 'exit 7'])",
        "os.mknod('/box/node', 0o600 | 0o060000, os.makedev(254, 0))\nopen('/box/node', 'rb')",
        "os.chroot('/box')",
        "os.setuid(0)",
        "os.kill(1, 0)\nos.kill(1, 9)\nimport time; time.sleep(0.1); os.kill(1, 0); raise OSError('it lives')",
        "socket.create_connection(('127.0.0.1', 22), 1)",
        "socket.create_connection(('192.0.2.1', 80), 1)",
        "socket.socket(40, socket.SOCK_STREAM)",  # to the hypervisor
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "socket.socket(17, socket.SOCK_RAW)",
        "assert ctypes.CDLL(None).unshare(0x10000000) == 0",
        "assert ctypes.CDLL(None).mount(b'x', b'/box', b'tmpfs', 0, None) == 0",
        "assert ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0",
        "assert ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0",
        "os.memfd_create('x')",
        "os.sethostname = None\nassert ctypes.CDLL(None).sethostname(b'x', 1) == 0",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)",
        "import numpy",
        "import rlvr_cli",
    ],
)
def test_a_program_is_refused(session, attempt):
    assert refused(session, attempt)


def test_a_program_that_kills_all_it_can_kills_nobody_else(session):
    program = "import os, time\nif os.fork() == 0: time.sleep(100)\nos.kill(-1, 9)\nos.kill(os.getppid(), 19)\nprint(1)"
    assert printed(session, program, "", "") == [b"1\n"] * 2


def test_a_program_can_work(session):
    program = "import os, tempfile, sqlite3, json, zoneinfo, multiprocessing as mp\ndef double(x):\n    return 2 * x\n"
    program += "def pool():\n    with mp.get_context('fork').Pool(2) as p:\n        return p.map(double, [1, 2])\n"
    program += (
        "def file():\n    with tempfile.TemporaryFile() as f:\n        f.write(b'abc'); f.seek(0); return f.read()\n"
    )
    found = values(session, program, "double(4)", "pool()", "file() == b'abc'", "os.getcwd()", "len(os.environ) < 3")
    assert found == [8, [2, 4], True, "/box", True]


def test_a_script_finds_what_an_interpreter_has(session):
    program = (
        "import sys, atexit, threading\natexit.register(print, 'exit')\n"
        "threading.Timer(0.2, print, ['thread']).start()\n"
        "print(open('/dev/stdin').read().strip(), input(), sys.argv, __name__, open(0).read() == '')\nexit()\n"
    )
    assert printed(session, program, "é\n") == ["é é ['program.py'] __main__ True\nthread\nexit\n".encode()]


def test_scripts_start_from_nothing(session):
    program = "import os\nprint(os.listdir('.'), os.listdir('/dev/shm'))\nopen('file', 'w'); os.mkdir('d')\n"
    program += "open('d/x', 'w'); open('/dev/shm/y', 'w')"
    assert printed(session, program, "", "") == [b"[] []\n"] * 2


@pytest.mark.parametrize(
    ("program", "kind", "text"),
    [
        ("1 / 0", "exception", "ZeroDivisionError: division by zero"),
        ("x = (", "exception", "SyntaxError"),
        ("x = '\0'", "exception", ""),
        ("raise SystemExit(3)", "exit", "exit code 3"),
        ("import os; os._exit(0)\n", None, b""),
        ("import sys; print(1); sys.exit(1)", "exit", "exit code 1"),
        ("import os; os.abort()", "signal", "signal 6"),
        ("import os; os.kill(os.getpid(), 9)", "killed", "signal 9"),
        ("import ctypes; ctypes.string_at(0)", "signal", "signal 11"),
        ("x = bytearray(1 << 30)", "memory", "MemoryError"),
        ("while True: print('x' * 100_000)", "output", "more than 100000 bytes"),
        ("print('x' * 200_000)", "output", "more than 100000 bytes"),
        ("with open('f', 'wb') as f:\n  for _ in range(99):\n    f.write(bytes(1 << 20))", "exception", "OSError"),
        ("for i in range(20_000):\n  open(str(i), 'w').close()", "exception", "OSError: [Errno 28]"),
        ("class E(Exception):\n  def __str__(self): raise E\nraise E", "exception", "E"),
    ],
)
def test_how_a_script_ended_is_told(session, program, kind, text):
    if "20_000" in program and session.options.isolation == "bwrap":
        pytest.skip("bubblewrap cannot limit how many files there are")
    (found,) = printed(session, program, "")
    if kind is None:
        assert found == text  # what an exit code of 0 is worth, the comparison says
    else:
        assert found[0] == kind
        assert found[1].startswith(text)


def test_however_deep_and_locked_its_directories_are_they_go(session):
    deep = "import os\nprint(os.listdir('.'))\nfor i in range(3000): os.mkdir('d'); open('f', 'w'); os.chdir('d')\n"
    assert printed(session, deep, "", "") == [b"[]\n"] * 2
    locked = "import os\nprint(os.listdir('.'))\nos.makedirs('a/b/c')\nos.chmod('a/b', 0); os.chmod('a', 0)"
    assert printed(session, locked, "", "") == [b"[]\n"] * 2


def test_what_breaks_after_a_program_has_begun_is_its_doing(session, monkeypatch):
    """Else a policy could have a wrong answer left out of its group."""
    told = [b"R", b"V\0\0\0\0" + b'{"values": [1]}', b"E it broke"]
    content = b"".join(struct.pack("<I", len(text)) + text for text in told)
    broken = [sys.executable, "-c", f"import sys; sys.stdin.buffer.read(1); sys.stdout.buffer.write({content!r})"]
    monkeypatch.setattr(session, "_zygote", subprocess.Popen(broken, stdin=-1, stdout=-1, bufsize=0))
    assert values(session, "x = 1", "x", "x + 1") == [1, None]
    assert values(session, "x = 1", "x", "x + 1") == [1, 2]


def test_what_one_test_spoils_the_next_finds_mended(session):
    program = "import os\ntry:\n    with open('/io/fill', 'wb') as f:\n        while True: f.write(bytes(1 << 20))\n"
    program += "except OSError: pass\ntry: os.chmod('/io', 0); os.chmod('/box', 0)\nexcept OSError: pass\nprint(1)"
    assert printed(session, program, "a" * 1000, "b" * 1000) == [b"1\n"] * 2
    assert printed(session, "print(2)", "") == [b"2\n"]


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import time; time.sleep(1000)",
        "x = 9 ** (9 ** 9)",
        "import signal\nfor s in {*signal.Signals} - {9, 19}: signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
        "import threading as t\nwhile True:\n  try: t.Timer(99, print).start()\n  except RuntimeError: pass",
        "import sys\nwhile True:\n  try: print('x' * 1_000_000, file=sys.stderr)\n  except OSError: pass",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "input = open('/dev/zero').read\nwhile 1:\n  try: input()\n  except MemoryError: pass",
    ],
)
def test_what_does_not_end_is_ended(program):
    session = Session(options(seconds=0.6, memory=256))
    begun = time.monotonic()
    try:
        (found,) = printed(session, program, "")
        assert found is None or found[0] in ("timeout", "killed")  # None: from outside, where it took all the time
        assert time.monotonic() - begun < 5
        assert printed(session, "print(input())", "next") == [b"next\n"]
    finally:
        session.close()


NAMED = "import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\n"
DAEMON = (
    NAMED + "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(100)\n    os._exit(0)\n"
)


def test_nothing_is_left_of_a_program(session):
    mark = f"left{os.getpid()}"
    program = DAEMON.format(mark=mark) + "os.wait()\nprint('done')"
    assert printed(session, program, "", "") == [b"done\n"] * 2
    assert sleepers(mark) == []
    assert values(session, DAEMON.format(mark=mark), "1 + 1") == [2]
    assert sleepers(mark) == []


def test_a_killed_worker_takes_its_sandbox_along():
    prepared = options(seconds=60.0)
    mark = f"orphan{os.getpid()}"
    code = (
        "from rlvr_cli.verifiers.sandbox.options import Options\n"
        "from rlvr_cli.verifiers.sandbox.session import Session\n"
        f"list(Session({prepared!r}).run('stdio', {(DAEMON.format(mark=mark) + 'time.sleep(100)')!r}, ['']))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], process_group=0) as worker:
        started = wait_until(lambda: len(sleepers(mark)) >= 2)
        os.killpg(worker.pid, signal.SIGKILL)
    assert started
    assert wait_until(lambda: not sleepers(mark))


def test_memory_is_limited_for_all_processes_together():
    program = NAMED.format(mark="eater") + "children = []\nfor _ in range(8):\n    pid = os.fork()\n    if pid == 0:\n"
    program += "        x = bytearray(120 << 20)\n        time.sleep(100)\n    children.append(pid)\n"
    program += "while True:\n    pid, status = os.wait()\n    print(status)\n    break\n"
    session = Session(options(seconds=4.0, memory=128))
    try:
        (found,) = printed(session, program, "")
        assert found in (b"9\n", None) or found[0] == "killed"  # one was killed, or all were
        assert printed(session, "print(1)", "") == [b"1\n"]
    finally:
        session.close()


def test_memory_is_watched_where_no_control_group_limits_it(monkeypatch):
    monkeypatch.setattr(cgroups, "make", lambda memory, processes: None)
    program = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(150 << 20)\n"
    program += "        time.sleep(100)\ntime.sleep(100)\n"
    session = Session(options(seconds=30.0, memory=128, isolation="unshare", own_user=os.geteuid() == 0))
    begun = time.monotonic()
    try:
        assert printed(session, program, "") == [None]
        assert time.monotonic() - begun < 15
    finally:
        session.close()


def test_values_beyond_the_limit_are_not_read(session):
    found = values(session, "def f(n):\n    return 'x' * n", "f(200_000)", "f(3)", "f(10 ** 12)", "f(4)")
    assert [value if isinstance(value, str) else value[0] for value in found] == ["output", "xxx", "memory", "xxxx"]


def test_a_program_that_dies_in_one_test_is_loaded_again_for_the_next(session):
    program = "import os\ndef f(n):\n    if n == 2: os._exit(0)\n    return n"
    assert values(session, program, "f(1)", "f(2)", "f(3)") == [1, ("exit", "exit code 0"), 3]


def test_tests_run_one_after_another_in_one_process(session):
    program = "seen = []\ndef f(n):\n    seen.append(n)\n    return list(seen)"
    assert values(session, program, "f(1)", "f(2)") == [[1], [1, 2]]


def test_answers_without_the_tests_secret_count_for_nothing(session):
    forged = json.dumps({"values": [42]})
    program = f"""
import os, struct
def f():
    answer = bytes(16) + {forged!r}.encode()
    for fd in range(3, 10):
        try: os.write(fd, struct.pack('<I', len(answer)) + answer)
        except OSError: pass
    return 1
"""
    assert values(session, program, "f()")[0] == ("forged", "")


def test_a_program_sees_no_descriptor_and_no_module_of_ours(session):
    program = "import os, sys\ndef fds():\n    found = []\n    for fd in range(3, 256):\n        try: os.fstat(fd)\n"
    program += "        except OSError: continue\n        found.append(fd)\n    return found\n"
    found = values(session, program, "fds()", "[name for name in sys.modules if 'inside' in name]", "sys.path[0][-4:]")
    assert found == [[3, 4], [], ".zip"]


def test_without_a_sandbox_the_limits_stay(tmp_path):
    session = Session(Options(seconds=1.0, memory=128, isolation="none"))
    mark = f"unsafe{os.getpid()}"
    try:
        assert printed(session, "print(int(input()) + 1)", "1", "2") == [b"2\n", b"3\n"]
        assert printed(session, "x = bytearray(1 << 29)", "")[0][0] == "memory"
        assert printed(session, "while True: pass", "")[0][0] == "timeout"
        assert printed(session, DAEMON.format(mark=mark) + "print(1)", "") == [b"1\n"]
        assert sleepers(mark) == []
    finally:
        session.close()


def test_cleaning_up_follows_no_link(tmp_path):
    """A program without a sandbox moves its directory away and puts a link to other people's files in its place."""
    victim = tmp_path / "victim"
    (victim / "inner").mkdir(parents=True)
    (victim / "file").write_text("kept")
    program = f"import os\nd = os.getcwd()\nos.rename(d, d + '-moved')\nos.symlink({str(victim)!r}, d)\n"
    program += (
        f"io = os.path.dirname(d) + '/io'\nos.rename(io, io + '-moved')\nos.symlink({str(victim)!r}, io)\nprint(1)\n"
    )
    session = Session(Options(seconds=5.0, isolation="none"))
    try:
        assert printed(session, program, "first", "second")[0] == b"1\n"
        assert values(session, program.rpartition("print")[0], "1 + 1", "2 + 2") == [2, 4]
    finally:
        session.close()
    assert sorted(path.name for path in victim.iterdir()) == ["file", "inner"]
    assert (victim / "file").read_text() == "kept"


def test_bubblewrap_makes_the_same_sandbox():
    if bubblewrap.find() is None:
        pytest.skip("bubblewrap is not installed")
    if probe.try_out(Options(isolation="bwrap")) is not None:
        assert not namespaces_work()
        pytest.skip("bubblewrap cannot make namespaces here")
    session = Session(Options(isolation="bwrap", memory=256))
    try:
        assert printed(session, "import os\nprint(input(), os.getcwd(), os.path.exists('/proc'))", "a", "b") == [
            b"a /box False\n",
            b"b /box False\n",
        ]
    finally:
        session.close()
