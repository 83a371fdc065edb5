"""The process that a worker keeps: it forks a sandbox for each job that comes, and starts no interpreter for it.

`python -I -S -c BOOT SETTINGS`. A job goes from the worker's pipe straight to the sandbox that is forked for it, and so
do the sandbox's messages. After each, `X` and the exit status tells the worker that everything in it is dead.
"""

import builtins
import gc
import json
import os
import select
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from . import lockdown, namespaces, runner, wire

# what programs import most; a sandbox that is forked has them at no cost
_WARM = ["bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "random", "re"]
_WARM += ["string", "typing", "dataclasses", "threading"]


def main() -> None:
    """Serve jobs until the worker is gone."""
    settings = json.loads(sys.argv[1])
    _forget_ourselves()
    os.umask(0o022)
    if settings["kind"] == "inside":  # bubblewrap has made the sandbox, and this is its process 1
        runner.run(runner.place("/box", "/io", alone=True), os.uname().machine)
        return
    lockdown.die_with_parent(settings["parent"])
    if settings["kind"] != "bwrap":
        for name in _WARM:
            __import__(name)
    machine = os.uname().machine
    lockdown.filter_for(machine)
    gc.collect()
    gc.freeze()
    gc.disable()
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    while waiting.poll()[0][1] & select.POLLIN:
        status = _serve(settings, machine)
        wire.write_message(1, b"X" + status.to_bytes(4, "little"))
        if status != 0:  # the job may not have been read to its end
            return


def _serve(settings: dict[str, Any], machine: str) -> int:
    """One job in a sandbox of its own; the keeper's exit status."""
    me = os.getpid()
    ready, ready_end = os.pipe()
    go_end, go = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        try:
            os.close(ready)
            os.close(go)
            lockdown.die_with_parent(me)
            _keep(settings, machine, me, ready_end, go_end)
        except BaseException as bad:
            wire.write_message(1, b"E" + f"{type(bad).__name__}: {bad}".encode(errors="replace")[:500])
        finally:
            os._exit(1)
    os.close(ready_end)
    os.close(go_end)
    if settings["kind"] == "unshare" and os.read(ready, 1) == b"u":
        try:
            namespaces.map_ids(keeper, settings["outside"] or os.geteuid())
            os.write(go, b"g")
        except OSError:
            os.write(go, b"n")
    os.close(ready)
    os.close(go)
    return os.waitpid(keeper, 0)[1]


def _keep(settings: dict[str, Any], machine: str, zygote: int, ready: int, go: int) -> NoReturn:
    _give_way()
    if settings["kind"] == "bwrap":
        os.close(ready)
        os.close(go)
        os.execv(settings["argv"][0], settings["argv"])
    if settings["kind"] == "unshare":
        namespaces.enter(ready, go, settings["view"], machine)
        lockdown.die_with_parent(zygote)  # entering a user namespace has cancelled it
    os.close(ready)
    os.close(go)
    me = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            if settings["kind"] == "unshare":
                namespaces.become_user()
                lockdown.die_with_parent(0)
                runner.run(runner.place("/box", "/io", alone=True), machine)
            else:
                lockdown.die_with_parent(me)
                _run_unprotected(machine)
            os._exit(0)
        except BaseException as bad:
            wire.write_message(1, b"E" + f"{type(bad).__name__}: {bad}".encode(errors="replace")[:500])
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    os._exit(0 if status == 0 else 1)


def _run_unprotected(machine: str) -> None:
    """With --unsafe-no-sandbox: two directories of its own and the limits, nothing else."""
    place = tempfile.mkdtemp(prefix="rlvr-unsafe-")
    held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        Path(place, "box").mkdir()
        Path(place, "io").mkdir()
        runner.run(runner.place(f"{place}/box", f"{place}/io", alone=False), machine)
    finally:
        runner.empty(held)
        with suppress(OSError):
            os.rmdir(place)  # noqa: PTH106


def _give_way() -> None:
    """When the machine's memory runs out, these processes go first."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return


def _forget_ourselves() -> None:
    """A program finds an interpreter like any other: this package is not there, `exit` and `quit` are."""
    import _sitebuiltins

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    sys.path.pop(0)
    for name in [name for name in sys.modules if name == "inside" or name.startswith("inside.")]:
        del sys.modules[name]
