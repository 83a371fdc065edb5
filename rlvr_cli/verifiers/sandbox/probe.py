"""Whether programs can be isolated here, found by trying: a program that attempts what it must not be able to do."""

import os
import socket
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import orjson

from rlvr_cli.errors import UserError
from rlvr_cli.verifiers.sandbox import bubblewrap
from rlvr_cli.verifiers.sandbox.options import DISK, Options
from rlvr_cli.verifiers.sandbox.session import SandboxError, Session

# Each of these gives True when the program was refused.
_ATTEMPTS = {
    "see other processes": "refused(lambda: os.kill({pid}, 0)) and not os.path.exists('/proc/{pid}')",
    "reach the network": "refused(lambda: socket.create_connection(('127.0.0.1', {port}), 1)) and "
    "refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53)))",
    "reach a local socket": "refused(lambda: socket.socket(socket.AF_UNIX).connect({abstract!r}))",
    "read files": "refused(lambda: open({file!r}))",
    "write files": "all(refused(lambda: written(place + '/rlvr-probe')) "
    "for place in ('/', '/tmp', '/etc', '/usr/lib', '/dev', os.path.dirname(os.__file__)))",
    "fill the disk": "os.statvfs('.').f_frsize * os.statvfs('.').f_blocks <= {disk}",
    "see the environment": "not {{*os.environ}} - {{'LC_CTYPE', 'PWD'}}",
    "take memory without limit": "refused(lambda: bytearray({memory}))",
    "start processes without limit": "children() < 300",
}
_PROGRAM = """
import os, signal, socket

def refused(attempt):
    try:
        attempt()
    except (OSError, MemoryError):
        return True
    return False

def written(path):
    open(path, "w").close()
    os.remove(path)

def children():
    started = []
    try:
        while len(started) < 300:
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            started.append(pid)
    except OSError:
        pass
    for pid in started:
        os.kill(pid, signal.SIGKILL)
    return len(started)
"""


def prepare(options: Options) -> Options:
    """The options with the isolation that works here. Raises UserError when none does and `sandbox` is wanted."""
    if options.isolation:
        return options
    if not options.sandbox:
        return replace(options, isolation="none")
    found = _isolation()
    return replace(options, isolation=found.isolation, own_user=found.own_user)


@lru_cache(maxsize=1)
def _isolation() -> Options:
    """What works, found once a process."""
    reasons = []
    for name, own_user in _candidates():
        reason = try_out(Options(isolation=name, own_user=own_user))
        if reason is None:
            return Options(isolation=name, own_user=own_user)
        reasons.append(f"{name}: {reason}")
    raise UserError(
        f"programs of a policy cannot be isolated on this machine ({'; '.join(dict.fromkeys(reasons))}); install "
        "bubblewrap, or allow user namespaces here (in a container: --security-opt seccomp=unconfined or --privileged);"
        " --unsafe-no-sandbox runs the programs unprotected"
    )


def _candidates() -> list[tuple[str, bool]]:
    """The ways to isolate, the best first."""
    found = [("bwrap", False)] if bubblewrap.find() else []
    return [*found, *([("unshare", True)] if os.geteuid() == 0 else []), ("unshare", False)]


def try_out(options: Options) -> str | None:
    """Why this isolation does not hold here; None when it does."""
    with ExitStack() as stack:
        facts = _bait(stack, options)
        tests = [{"steps": [["eval", attempt.format(**facts)]]} for attempt in _ATTEMPTS.values()]
        session = Session(options)
        stack.callback(session.close)
        try:
            messages = {message.number: message for message in session.run("assert", _PROGRAM, tests)}
        except (SandboxError, OSError) as bad:
            return str(bad)
    for number, attempt in enumerate(_ATTEMPTS):
        message = messages.get(number)
        if message is None or message.kind != "V":
            told = message.content.decode(errors="replace") if message is not None else "it ended early"
            return f"the attempt to {attempt} could not be made ({told[:200]})"
        if orjson.loads(message.content) != {"values": [True]}:
            return f"a program can {attempt}"
    return None


def _bait(stack: ExitStack, options: Options) -> dict[str, object]:
    """What a program must not reach: a listening port, a local socket, a file."""
    listener = stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    local = stack.enter_context(socket.socket(socket.AF_UNIX))
    abstract = f"\0rlvr-probe-{os.getpid()}"
    local.bind(abstract)
    local.listen()
    file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="rlvr-probe-"))  # noqa: SIM115
    return {
        "pid": os.getpid(),
        "port": listener.getsockname()[1],
        "abstract": abstract,
        "file": str(Path(file.name).resolve()),
        "disk": DISK,
        "memory": (options.memory + 1024) << 20,
    }
