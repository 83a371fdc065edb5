"""One worker process, as the pool sees it: started, spoken to without ever waiting for it, killed with all it began."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rlvr_cli.streams.jsonl import loads
from rlvr_cli.verifiers.worker import HEADER, framed

LARGEST = 64 << 20  # bytes of one message; a longer one is noise that a judge wrote to our socket

# With -P nothing in the working directory can pass for a module of the standard library before the path is set.
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
    "from rlvr_cli.verifiers.worker import main; main(int(sys.argv[1]))"
)


class NoiseError(Exception):
    """What came from a worker is no message."""


class Process:
    """A Python of its own, in a process group of its own: a Ctrl-C in the terminal goes to the parent alone."""

    def __init__(self, memory: int) -> None:
        """Start one that may have `memory` MiB."""
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env={"OMP_NUM_THREADS": "1", **os.environ},  # there is a process for each core already
            )
        self._out = bytearray(framed(pickle.dumps(memory)))
        self._in = bytearray()

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._process.pid

    def send(self, value: Any) -> None:
        """Owe the worker a frame; `flush` sends it."""
        self._out += framed(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))

    def flush(self) -> bool:
        """Send what the socket takes now; whether there is more to send. A worker that died is no failure here."""
        try:
            while self._out:
                del self._out[: self.socket.send(self._out)]
        except BlockingIOError:
            return True
        except OSError:
            self._out.clear()
        return False

    def messages(self) -> Iterator[list[Any]]:
        """The messages that have come. Raises EOFError after the last of a worker that has gone, NoiseError."""
        ended = False
        while True:
            try:
                data = self.socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                ended = True
                break
            self._in += data
            if len(data) < 1 << 16:
                break
        yield from self._whole()
        if ended:
            raise EOFError

    def _whole(self) -> Iterator[list[Any]]:
        offset = 0
        while len(self._in) - offset >= HEADER.size:
            (length,) = HEADER.unpack_from(self._in, offset)
            if length > LARGEST:
                raise NoiseError
            end = offset + HEADER.size + length
            if len(self._in) < end:
                break
            try:
                message = loads(bytes(self._in[offset + HEADER.size : end]))
            except ValueError as bad:
                raise NoiseError from bad
            if not isinstance(message, list) or not message:
                raise NoiseError
            offset = end
            yield message
        del self._in[:offset]

    def gone(self) -> bool:
        """Whether the process has ended. It stays a zombie, so that its id, and its group's, remain its own."""
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13
            return self._process.poll() is not None
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def slow_down(self) -> None:
        """Let others have the processor first."""
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, self.pid) + 5)

    def hang_up(self) -> None:
        """Let the worker see that nothing more comes; it ends by itself."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> None:
        """Wait until the process has ended, or time is up."""
        until = time.monotonic() + seconds
        while not self.gone() and time.monotonic() < until:
            time.sleep(0.002)

    def end(self, patience: float = 0.0) -> str:
        """End the process, and whatever it started and left in its group. Returns how it ended.

        With `patience`, a process that is about to end by itself has so many seconds for it.
        """
        self.wait(patience)
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # what the system cannot end now, it ends later
            self._process.wait(5)
        self.socket.close()
        code = self._process.returncode
        if code is None or code >= 0:
            return f"ended with exit code {code}"
        return f"was killed by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"
