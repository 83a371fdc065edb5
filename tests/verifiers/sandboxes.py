"""What the tests of the sandbox share: options with the isolation that this machine has, or a skip with the reason."""

import ctypes
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rlvr_cli.errors import UserError
from rlvr_cli.verifiers.sandbox.options import Options
from rlvr_cli.verifiers.sandbox.probe import prepare

NEW_NAMESPACES = 0x10000000 | 0x20000 | 0x20000000 | 0x40000000  # user, mount, pid, network


def namespaces_work() -> bool:
    """Whether the system lets this user make namespaces, asked of it directly."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(NEW_NAMESPACES) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def options(**changes) -> Options:
    """Prepared options. Where there is no isolation, what has to happen is a refusal that names the way out."""
    try:
        found = prepare(Options())
    except UserError as refused:
        assert "--unsafe-no-sandbox" in str(refused)
        pytest.skip(f"no isolation on this machine: {refused}")
    return replace(found, **changes)


def sleepers(mark):
    """The processes on this machine whose command line or memory of it bears the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "comm").read_text():
                    found.append(entry.name)
            except OSError:
                continue
    return found


def wait_until(condition, seconds=15.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
