"""The worker's side: a zygote is kept, jobs are sent to it one after another, messages are read under a deadline."""

import atexit
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_cli.verifiers.sandbox import cgroups
from rlvr_cli.verifiers.sandbox.bubblewrap import bubblewrap
from rlvr_cli.verifiers.sandbox.inside.wire import HEADER
from rlvr_cli.verifiers.sandbox.options import DISK, INTERPRETER, MIB, PROCESSES, STREAMS, Options
from rlvr_cli.verifiers.sandbox.view import SIZES, view

BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from inside import zygote; zygote.main()"
HERE = str(Path(__file__).parent)
GRACE = 2.0  # seconds beyond the program's own, after which a sandbox that does not end is killed from outside
START = 6.0  # seconds that a sandbox may take to come up on a machine that is busy
_TICK = 0.05


class SandboxError(Exception):
    """The sandbox did not come up or broke down before the program began: the judge's fault."""


@dataclass(frozen=True)
class Message:
    """One message of a sandbox, see inside/runner.py: its kind, the number of the test, the content."""

    kind: str
    number: int
    content: bytes


class Session:
    """A zygote and its pipes. Belongs to the process that made it."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.owner = os.getpid()
        self._group = cgroups.make(options.memory * MIB + DISK + STREAMS + INTERPRETER, PROCESSES + 8)
        self._zygote: subprocess.Popen[bytes] | None = None

    def run(self, kind: str, program: str, tests: list[Any], prelude: str = "") -> Iterator[Message]:
        """Run a program on its tests and give what is told of them.

        The tests of `stdio` are inputs, those of `assert` steps; a `prelude` of ours runs before the program of these.
        Ends early when the sandbox dies or its time is over; then some tests have no message. Raises SandboxError.
        """
        options = self.options
        job = {
            "kind": kind,
            "program": program,
            "tests": tests,
            "prelude": prelude,
            "seconds": options.seconds,
            "memory": options.memory * MIB + INTERPRETER,
            "output": options.output,
            "file_size": DISK,
            "processes": PROCESSES,
        }
        zygote = self._started()
        done = False
        try:
            with suppress(BrokenPipeError):  # what went wrong is told in a message
                self._send(zygote, json.dumps(job).encode())
            yield from self._messages(zygote)
            done = True
        finally:
            if not done or zygote.poll() is not None:
                self.close(keep_group=True)

    def close(self, keep_group: bool = False) -> None:
        """Kill the zygote and what it holds, and wait until it is gone."""
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.kill()
            zygote.wait()
            assert zygote.stdin is not None and zygote.stdout is not None
            zygote.stdin.close()
            _drain(zygote.stdout.fileno())
            zygote.stdout.close()
        if not keep_group and self._group is not None:
            self._group.remove()
            self._group = None

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._zygote is None:
            self._zygote = subprocess.Popen(
                [view().python, "-I", "-S", "-B", "-X", "utf8", "-c", BOOT, HERE, json.dumps(self._settings())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={},
                cwd="/",
                start_new_session=True,
            )
            if self._group is not None and not self._group.add(self._zygote.pid):
                self._group.remove()
                self._group = None
        return self._zygote

    def _settings(self) -> dict[str, Any]:
        shown = view()
        settings: dict[str, Any] = {"kind": self.options.isolation, "parent": os.getpid()}
        if self.options.isolation == "unshare":
            settings["view"] = {"shown": shown.shown, "emptied": shown.emptied, "sizes": SIZES}
            settings["outside"] = _OWN_USERS + os.getpid() if self.options.own_user else 0
        elif self.options.isolation == "bwrap":
            inside = [shown.python, "-I", "-S", "-B", "-X", "utf8", "-c", BOOT, "/rlvr", '{"kind": "inside"}']
            settings["argv"] = bubblewrap(shown, SIZES, f"{HERE}/inside", inside)
        return settings

    def _send(self, zygote: "subprocess.Popen[bytes]", content: bytes) -> None:
        assert zygote.stdin is not None
        left = memoryview(HEADER.pack(len(content)) + content)
        while left:
            left = left[zygote.stdin.write(left) :]

    def _messages(self, zygote: "subprocess.Popen[bytes]") -> Iterator[Message]:
        """The messages of one job until the last, `X`. Raises SandboxError when the program never began."""
        assert zygote.stdout is not None
        fd = zygote.stdout.fileno()
        longest = self.options.output + 4096
        deadline = time.monotonic() + START
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        buffer = bytearray()
        begun = False
        while True:
            while (message := _next(buffer, longest)) is not None:
                if message.kind == "R":
                    begun = True
                    deadline = time.monotonic() + self.options.seconds + GRACE
                elif message.kind in "EX":
                    if not begun:
                        raise SandboxError(message.content.decode(errors="replace") or "it ended before it began")
                    if message.kind == "E" or message.number:
                        self.close(keep_group=True)  # what breaks after the program has begun is its doing
                    return
                else:
                    yield message
            left = deadline - time.monotonic()
            if left <= 0:
                if not begun:
                    raise SandboxError(f"it did not come up within {START:g} s")
                return self.close(keep_group=True)
            if not waiting.poll(min(left, _TICK) * 1000 if begun and self._unlimited() else left * 1000):
                if begun and self._unlimited() and cgroups.resident(zygote.pid) > self._most():
                    return self.close(keep_group=True)
                continue
            part = os.read(fd, 1 << 16)
            if not part:
                if not begun:
                    raise SandboxError("its process is gone")
                return self.close(keep_group=True)
            buffer += part

    def _unlimited(self) -> bool:
        """Whether no control group limits the memory of all processes together: then it is watched."""
        return self._group is None or not self._group.memory

    def _most(self) -> int:
        return self.options.memory * MIB + STREAMS + DISK + INTERPRETER


_OWN_USERS = 1 << 30  # user ids that no account has


def _next(buffer: bytearray, longest: int) -> Message | None:
    """Take the next whole message off the buffer, if it is there."""
    if len(buffer) < HEADER.size:
        return None
    (size,) = HEADER.unpack_from(buffer)
    if not 1 <= size <= longest:  # a runner was killed while it wrote: this cannot be read on
        return Message("E", 0, b"it sent no message")
    if len(buffer) < HEADER.size + size:
        return None
    content = bytes(buffer[HEADER.size : HEADER.size + size])
    del buffer[: HEADER.size + size]
    kind = chr(content[0])
    if kind in "RE":
        return Message(kind, 0, content[1:])
    return Message(kind, int.from_bytes(content[1:5], "little"), content[5:])


def _drain(fd: int) -> None:
    """Read until every process that holds the other end is dead, for a second at most."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    while waiting.poll(1000) and os.read(fd, 1 << 16):
        pass


_sessions: dict[Options, Session] = {}


def session(options: Options) -> Session:
    """This process's session with these options; one is kept from call to call."""
    kept = _sessions.get(options)
    if kept is None or kept.owner != os.getpid():  # after a fork, the parent's is not ours
        for other in _sessions.values():
            if other.owner == os.getpid():
                other.close()
        _sessions.clear()
        kept = _sessions[options] = Session(options)
    return kept


@atexit.register
def close_all() -> None:
    """End the sessions of this process."""
    for kept in _sessions.values():
        if kept.owner == os.getpid():
            kept.close()
    _sessions.clear()
