"""Inside a worker process of the pool (pool.py): records come in, judgements go out, one after the other.

Frames on a socket, a length of four bytes and that many: from the pool pickles (the MiB of memory, then lists of
tasks), from here JSON, so that nothing that a judge could have been talked into is ever unpickled:
`["ready"]` when it has started; `["loading"]` and `["judging"]` around the loading of a verifier, whose time is charged
to no record; `["judged", seconds, verdict, reward, extracted, detail]` for each record; `["memory"]` instead of that
when memory has run out; `["stop", text]` for an error that the user has to mend.

The pool keeps the time and kills. Should the pool be gone or busy, the system's own alarm ends a record that takes a
second more than it may, even one that hangs in C code; nothing here handles that alarm.
"""

import os
import pickle
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any

from rlvr_cli.errors import UserError
from rlvr_cli.records import Record
from rlvr_cli.streams.jsonl import dumps
from rlvr_cli.verifiers import load
from rlvr_cli.verifiers.judgement import Judgement, error

HEADER = struct.Struct("<I")
GRACE = 1.0  # seconds beyond the deadline that the pool has for killing

# What a verifier imports when it first judges; here before, so that no record's time pays for it.
ENGINES = {"json": "jsonschema", "math": "math_verify", "reasoning-gym": "reasoning_gym"}


# A task on the wire: verifier, what it is called with beside the record, deadline in seconds, place, columns.
Sent = tuple[str, Any, float, str, dict[str, Any]]


def framed(data: bytes) -> bytes:
    """The data with its length before it."""
    return HEADER.pack(len(data)) + data


_OUT_OF_MEMORY = framed(dumps(["memory"]))  # made while there is memory for it


def main(descriptor: int) -> None:
    """Judge what comes from the socket until it is closed."""
    os.dup2(2, 1)  # what a judge prints is no record
    with suppress(BrokenPipeError, ConnectionResetError):  # the pool is gone
        _serve(descriptor)


def _serve(descriptor: int) -> None:
    os.set_inheritable(descriptor, False)
    channel = socket.socket(fileno=descriptor)
    stream = channel.makefile("rb")
    if not (memory := _frame(stream)):
        return
    _limit(pickle.loads(memory) << 20)
    channel.sendall(framed(dumps(["ready"])))
    worker = Worker(channel)
    while chunk := _frame(stream):
        tasks: list[Sent] = pickle.loads(chunk)
        for name, options, deadline, where, columns in tasks:
            worker.judge(name, options, deadline, Record(columns, where))


def _frame(stream: IO[bytes]) -> bytes:
    """The next frame; nothing when the pool has closed the socket or is dead."""
    head = stream.read(HEADER.size)
    return stream.read(HEADER.unpack(head)[0]) if len(head) == HEADER.size else b""


def _limit(memory: int) -> None:
    """Bound the memory that this process can have of its own. No core files: they would be as large."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = memory if most == resource.RLIM_INFINITY else min(memory, most)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])


class Worker:
    """Judges one record at a time, and says so at once."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._owner = os.getpid()
        self._judges: dict[str, Callable[..., Judgement]] = {}

    def judge(self, name: str, options: Any, deadline: float, record: Record) -> None:
        """Judge one record and send the judgement. Does not return when memory has run out."""
        judge = self._judges.get(name) or self._load(name)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # an earlier judge may have left a handler
        signal.setitimer(signal.ITIMER_REAL, deadline + GRACE)
        begun = time.monotonic()
        try:
            judgement = judge(record) if options is None else judge(record, options)
            message = _message(begun, judgement)
        except MemoryError:
            self._channel.sendall(_OUT_OF_MEMORY)
            os._exit(1)
        except UserError as bad:
            message = dumps(["stop", str(bad)])
        except BaseException as bad:  # whatever a judge raises, an exit too, is a judge that failed
            message = _message(begun, error(said(bad)))
        finally:
            if os.getpid() != self._owner:  # a child that a judge forked and let come back
                os._exit(0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._channel.sendall(framed(message))

    def _load(self, name: str) -> Callable[..., Judgement]:
        self._channel.sendall(framed(dumps(["loading"])))
        try:
            judge = load(name)
            if (engine := ENGINES.get(name)) and find_spec(engine):
                import_module(engine)
        except BaseException as bad:
            text = str(bad) if isinstance(bad, UserError) else f"verifier {name} cannot be loaded: {said(bad)}"
            self._channel.sendall(framed(dumps(["stop", text])))
            sys.exit(1)
        self._judges[name] = judge
        self._channel.sendall(framed(dumps(["judging"])))
        return judge


def _message(begun: float, judgement: Judgement) -> bytes:
    seconds = time.monotonic() - begun
    said: list[Any] = [judgement.verdict, judgement.reward, judgement.extracted, judgement.detail]
    return dumps(["judged", seconds, *said])


def said(bad: BaseException) -> str:
    """An exception as one short line that a record can hold."""
    return f"{type(bad).__name__}: {bad}".encode(errors="replace").decode()[:500]
