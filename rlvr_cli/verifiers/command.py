"""A program that judges, named as `command:PROGRAM ARGUMENTS` (words as a shell splits them; there is no shell).

It is started once a worker and kept running. One record a line goes to its standard input, as JSON; for each it writes
one line to its standard output and flushes it: a number, the reward, or an object of `verdict` and `reward` (one can be
left out), `extracted`, and anything else as detail. What it writes to its standard error is passed on.

A program that ends, or writes anything else, has failed on that record: verdict `error` with the reason and the end of
what it wrote to standard error. It is started again for the next record. One that gives no line within the record's
deadline is killed: verdict `timeout`.
"""

import atexit
import os
import selectors
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from rlvr_cli.errors import UsageError
from rlvr_cli.policy import digest_files
from rlvr_cli.records import Record
from rlvr_cli.streams.jsonl import dumps, loads
from rlvr_cli.verifiers.judgement import Judgement, error
from rlvr_cli.verifiers.own import as_judgement

LONGEST_LINE = 1 << 20  # bytes of an answer
TAIL = 500  # bytes of standard error that are kept for the reason
ENDING = 0.5  # seconds that a program which closed a stream has to end by itself, to say by its exit code how
LEAVING = 1.0  # seconds that a program has to end once its input is closed


class ProgramError(Exception):
    """The program gave no judgement."""


def load_program(name: str) -> "ProgramJudge":
    """A judge that asks the program behind `command:WORDS`. Raises UsageError when there is none."""
    judge = ProgramJudge(_words(name))
    atexit.register(judge.leave)
    return judge


class ProgramJudge:
    """Called with a record, asks the program, which is started when there is none."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._program: _Program | None = None

    def __call__(self, record: Record) -> Judgement:
        """What the program says of the record."""
        try:
            self._program = self._program or _Program(self._words)
            return as_judgement(loads(self._program.ask(dumps(record) + b"\n")))
        except (ProgramError, OSError, ValueError, TypeError) as bad:
            reason = f"the program failed: {bad}"
            if self._program is not None:
                reason += self._program.stop()
            self._program = None
            return error(reason)

    def leave(self) -> None:
        """Let the program end."""
        if self._program is not None:
            self._program.leave()
        self._program = None


def program_version(name: str) -> str:
    """A digest of the program's file and of those among its arguments that are files."""
    words = _words(name)
    return f"digest {digest_files([Path(word) for word in words if Path(word).is_file()])}"


def _words(name: str) -> list[str]:
    text = name.partition(":")[2]
    try:
        words = shlex.split(text)
    except ValueError as bad:
        raise UsageError(f"verifier {name}: {bad}; quote its words as for a shell") from bad
    found = shutil.which(words[0]) if words else None
    if found is None:
        raise UsageError(f"verifier {name}: no program {words[0] if words else ''!r}; name one that can be run")
    return [found, *words[1:]]


class _Program:
    """The running program. Asking it never waits for one of its streams alone, so that it cannot block on another."""

    def __init__(self, words: list[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._in, self._out, self._err = (
            stream.fileno() for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)
        self._answer = b""
        self._tail = b""
        self._closing = False  # it has closed one of its streams

    def ask(self, line: bytes) -> bytes:
        """Write a line and wait for one. Raises ProgramError."""
        with suppress(BlockingIOError):
            self._read()
        if self._answer:
            raise ProgramError("it wrote a line before it was asked")
        owed = memoryview(line)
        self._selector.register(self._in, selectors.EVENT_WRITE)
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.fd == self._in:
                        owed = owed[self._write(owed) :]
                        if not owed:
                            self._selector.unregister(self._in)
                    elif key.fd == self._err:
                        self._listen()
                    elif self._read():
                        return self._line(bool(owed))
        finally:
            with suppress(KeyError):
                self._selector.unregister(self._in)

    def _write(self, owed: memoryview) -> int:
        try:
            return os.write(self._in, owed)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            self._closing = True
            raise ProgramError("it closed its standard input") from None

    def _read(self) -> bool:
        """Whether the line is whole."""
        data = os.read(self._out, 1 << 16)
        if not data:
            self._closing = True
            raise ProgramError("it closed its standard output")
        self._answer += data
        if len(self._answer) > LONGEST_LINE:
            raise ProgramError(f"it wrote a line of more than {LONGEST_LINE} bytes")
        return b"\n" in data

    def _line(self, early: bool) -> bytes:
        line, _, self._answer = self._answer.partition(b"\n")
        if early:
            raise ProgramError("it answered before it had read the record")
        if self._answer:
            raise ProgramError("it wrote more than one line for a record")
        return line

    def _listen(self) -> None:
        data = os.read(self._err, 1 << 16)
        if not data:
            self._selector.unregister(self._err)
        self._tail = (self._tail + data)[-TAIL:]
        with suppress(OSError):
            sys.stderr.buffer.write(data)
            sys.stderr.flush()

    def leave(self) -> None:
        """Close its input, and let it end."""
        self._selector.unregister(self._out)
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        until = time.monotonic() + LEAVING
        while self._err in self._selector.get_map() and (left := until - time.monotonic()) > 0:
            if self._selector.select(left):
                self._listen()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, until - time.monotonic()))
        self._process.kill()

    def stop(self) -> str:
        """End it, and say how it had ended if it had, and what it said last."""
        if self._closing:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING)
        ended = self._process.poll()
        self._process.kill()
        self._process.wait()
        with suppress(BlockingIOError):
            while self._err in self._selector.get_map():
                self._listen()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with suppress(OSError):
                    stream.close()
        how = ""
        if ended is not None:
            how = f" (exit code {ended})" if ended >= 0 else f" (killed by signal {-ended})"
        tail = self._tail.decode(errors="replace").strip()
        return f"{how}; it said: {tail}" if tail else how
