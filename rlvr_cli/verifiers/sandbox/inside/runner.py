"""Process 1 of the sandbox: runs the program on each test and reports. It reads the job from descriptor 0 and writes
messages to descriptor 1, of which a program has neither.

    R                       ready: from here on, what goes wrong is the program's doing
    O number output         a script ended well, and this is what it printed
    V number values         what a test's expressions gave, as data
    F number kind text      a test failed
    E text                  the sandbox itself failed

No signal that the program sends reaches process 1 of a pid namespace, and nobody may look into this one.
"""

import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import lockdown, program, wire

ENDED_BY = {9: "killed", 24: "timeout", 25: "output"}  # SIGKILL: mostly for want of memory; SIGXCPU; SIGXFSZ
_REPORT = 4096  # bytes of what a script may tell of its end


@dataclass(frozen=True)
class Place:
    """Where programs work, and whether all processes here are theirs.

    held: their directory, where their streams lie, and what else is theirs to write to, all held open: a program may
    put a link in the place of one, and cleaning up must not follow it.
    """

    alone: bool
    held: tuple[int, ...]


def place(directory: str, streams: str, *, alone: bool) -> Place:
    """Hold the directories of a sandbox. Its /dev/shm is emptied between tests too."""
    names = (directory, streams, "/dev/shm") if alone else (directory, streams)
    held = tuple(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) for name in names)
    return Place(alone, held)


def run(place: Place, machine: str) -> None:
    """Serve one job."""
    lockdown.prctl(lockdown.PR_SET_DUMPABLE, 0)
    lockdown.limit_one(resource.RLIMIT_NOFILE, program.FILES)
    if place.alone:
        if os.getpid() != 1:  # what sweeps up after a program would kill everything
            raise OSError("no pid namespace")
        lockdown.drop_capabilities()
        lockdown.filter_calls(machine)
    else:
        lockdown.prctl(lockdown.PR_SET_CHILD_SUBREAPER, 1)
    content = wire.read_message(0)
    if content is None:
        return
    job = json.loads(content)
    wire.write_message(1, b"R")
    deadline = time.monotonic() + job["seconds"]
    with suppress(BrokenPipeError):
        (_run_scripts if job["kind"] == "stdio" else _run_calls)(job, place, deadline)


def _confine(job: dict[str, Any]) -> Callable[[], None]:
    def confine() -> None:
        lockdown.limit(job["seconds"], job["memory"], job["file_size"], job["processes"], program.FILES)

    return confine


def _run_scripts(job: dict[str, Any], place: Place, deadline: float) -> None:
    streams = place.held[1]
    for number, text in enumerate(job["tests"]):
        stdin = os.open("stdin", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=streams)
        with open(stdin, "w", encoding="utf-8", errors="surrogatepass", newline="", closefd=False) as file:
            file.write(text)
        os.lseek(stdin, 0, os.SEEK_SET)
        stdout = os.open("stdout", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=streams)
        report, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                (fd,) = program.prepare([theirs], stdin, stdout, _confine(job), place.held[0])
                program.run_script(job["program"], fd)
            finally:
                os._exit(1)
        os.close(theirs)
        os.close(stdin)
        status = _wait(pid, deadline)
        _sweep(place)
        told = _told(report)
        if status is None:
            _fail(number, "timeout")
            return
        _report_script(number, status, told, stdout, job["output"])
        os.close(stdout)


def _report_script(number: int, status: int, told: bytes, stdout: int, longest: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if os.fstat(stdout).st_size > longest:
        _fail(number, "output", f"more than {longest} bytes")
    elif code < 0:
        _fail(number, ENDED_BY.get(-code, "signal"), f"signal {-code}")
    elif told:
        _fail_with(number, told)
    elif code:
        _fail(number, "exit", f"exit code {code}")
    else:
        os.lseek(stdout, 0, os.SEEK_SET)
        with open(stdout, "rb", closefd=False) as file:
            wire.write_message(1, b"O" + number.to_bytes(4, "little") + file.read(longest))


class _Loaded:
    """A process that has loaded the program and answers tests, one at a time."""

    def __init__(self, job: dict[str, Any], place: Place) -> None:
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                null = os.open(os.devnull, os.O_RDWR)
                fds = program.prepare([commands, answers], null, null, _confine(job), place.held[0])
                program.run_calls(job["program"], job["tests"], job["prelude"], *fds)
            finally:
                os._exit(1)
        os.close(commands)
        os.close(answers)
        self.ended = os.pidfd_open(self.pid)
        self.longest = job["output"]

    def answer(self, deadline: float) -> bytes | str:
        """What the process says next, or the kind of failure when it says nothing."""
        waiting = select.poll()
        waiting.register(self.answers, select.POLLIN)
        waiting.register(self.ended, select.POLLIN)
        content = b""
        size = None
        while size is None or len(content) < size:
            events = dict(waiting.poll(max(0.0, deadline - time.monotonic()) * 1000))
            if not events:
                return "timeout"
            part = os.read(self.answers, 65536) if events.get(self.answers, 0) & select.POLLIN else b""
            if not part:
                return "ended"
            content += part
            if size is None and len(content) >= 4:
                size = 4 + wire.HEADER.unpack(content[:4])[0]
                if size > self.longest + 1000:
                    return "output"
        return content[4:size]

    def ask(self, number: int, deadline: float) -> bytes | str:
        """The answer to a test, when it comes with this test's own secret."""
        secret = os.urandom(16)
        with suppress(BrokenPipeError):
            os.write(self.commands, number.to_bytes(4, "little") + secret)
        answer = self.answer(deadline)
        if isinstance(answer, str):
            return answer
        return answer[16:] if answer[:16] == secret else "forged"

    def close(self, place: Place, ending: bool = False) -> int:
        """Kill whatever is left; the status that the process ended with. One that is `ending` gets the time to."""
        if not select.select([self.ended], [], [], 0.2 if ending else 0)[0]:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        for fd in (self.commands, self.answers, self.ended):
            os.close(fd)
        _sweep(place)
        return status


def _run_calls(job: dict[str, Any], place: Place, deadline: float) -> None:
    loaded: _Loaded | None = None
    for number in range(len(job["tests"])):
        if loaded is None:
            loaded = _Loaded(job, place)
            answer = loaded.answer(deadline)
            if answer != b"loaded":
                status = loaded.close(place, answer == "ended")
                for left in range(number, len(job["tests"])):
                    _report_answer(left, answer, status, "while the program was loaded")
                return
        answer = loaded.ask(number, deadline)
        if isinstance(answer, str):
            _report_answer(number, answer, loaded.close(place, answer == "ended"), "")
            loaded = None
            if answer == "timeout":
                return
        else:
            _report_answer(number, answer, 0, "")
    if loaded is not None:
        loaded.close(place)


def _report_answer(number: int, answer: bytes | str, status: int, when: str) -> None:
    if isinstance(answer, bytes):
        if answer.startswith(b'{"failure": '):
            _fail_with(number, answer)
        else:
            wire.write_message(1, b"V" + number.to_bytes(4, "little") + answer)
        return
    text = when
    if answer == "ended":
        code = os.waitstatus_to_exitcode(status)
        answer = "exit" if code >= 0 else ENDED_BY.get(-code, "signal")
        text = " ".join(filter(None, [f"exit code {code}" if code >= 0 else f"signal {-code}", when]))
    _fail(number, answer, text)


def _fail_with(number: int, told: bytes) -> None:
    """Report the exception that a program says it ended with."""
    name, text = "exception", ""
    with suppress(Exception):
        name, text = (str(part) for part in json.loads(told)["failure"])
    kind = "memory" if name == "MemoryError" else "exit" if name == "SystemExit" else "exception"
    _fail(number, kind, f"{name}: {text}" if text else name)


def _fail(number: int, kind: str, text: str = "") -> None:
    text = text[:300].encode(errors="replace").decode()  # it may hold what no text can be made of
    wire.write_message(1, b"F" + number.to_bytes(4, "little") + json.dumps([kind, text]).encode())


def _wait(pid: int, deadline: float) -> int | None:
    """The status that a child ended with; None when its time ran out, and it was killed."""
    ended = os.pidfd_open(pid)
    done = select.select([ended], [], [], max(0.0, deadline - time.monotonic()))[0]
    os.close(ended)
    if not done:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return status if done else None


def _told(report: int) -> bytes:
    """What is in the pipe now; a process that still holds it is not waited for."""
    os.set_blocking(report, False)
    with open(report, "rb", buffering=0) as file:
        return file.read(_REPORT) or b""


def _sweep(place: Place) -> None:
    """Kill and reap every process that a program left behind, and empty its directory."""
    if place.alone:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all of the pid namespace but process 1, which this is
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
    else:
        _kill_children()
    for directory in place.held:
        with suppress(OSError):
            os.fchmod(directory, 0o1777 if place.alone else 0o700)
        empty(directory)


def empty(directory: int) -> None:
    """Remove all that is in an open directory, following no link, however deep it goes: what is deep is moved up."""
    number = 0
    while True:
        left = _entries(directory)
        before = number
        for name, is_directory in left:
            with suppress(OSError):
                if not is_directory:
                    os.unlink(name, dir_fd=directory)
                    continue
                os.chmod(name, 0o700, dir_fd=directory)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
                try:
                    for below, is_directory_too in _entries(inner):
                        if is_directory_too:
                            os.chmod(below, 0o700, dir_fd=inner)
                            os.rename(below, f".rlvr-{time.monotonic_ns()}", src_dir_fd=inner, dst_dir_fd=directory)
                            number += 1
                        else:
                            os.unlink(below, dir_fd=inner)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=directory)
        if number == before:
            return


def _entries(directory: int) -> list[tuple[str, bool]]:
    with os.scandir(directory) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _kill_children() -> None:
    """Without a namespace: kill this process's children until there is none; orphans become its children too."""
    me = os.getpid()
    for _ in range(1000):
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
        if not children:
            return
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        time.sleep(0.001)
