"""What a program sees of the machine: an interpreter, its standard library, the system's libraries. All read-only.

No shell, no other program, no /proc, /sys, /home, no site-packages: a program has the standard library alone.
"""

import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rlvr_cli.verifiers.sandbox.options import DISK, SHARED_MEMORY, STREAMS

SIZES = {"/box": DISK, "/dev/shm": SHARED_MEMORY, "/io": STREAMS}
_LIBRARIES = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale")
_PACKAGES = ("site-packages", "dist-packages")
_SYSTEM = ("/usr", "/usr/local")


@dataclass(frozen=True)
class View:
    """The interpreter outside any virtual environment, the paths that are shown, and directories shown empty."""

    python: str
    shown: tuple[str, ...]
    emptied: tuple[str, ...]


@lru_cache(maxsize=1)
def view() -> View:
    """What is shown on this machine."""
    python = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    prefix = os.path.realpath(sys.base_prefix)
    library = os.path.realpath(sysconfig.get_path("stdlib", vars={"installed_base": prefix, "base": prefix}))
    wanted = [_libraries(path) for path in _LIBRARIES]
    wanted += [*_SETTINGS, library if prefix in _SYSTEM else str(Path(library).parent), python]
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):  # the interpreter itself is in a library
        wanted.append(os.path.realpath(sysconfig.get_config_var("LIBDIR")))
    shown: list[str] = []
    for path in wanted:
        known = any(Path(path).is_relative_to(other) for other in shown if not Path(other).is_symlink())
        if os.path.lexists(path) and not known:
            shown = [other for other in shown if not Path(other).is_relative_to(path)] + [path]
    emptied = [f"{library}/{name}" for name in _PACKAGES]
    return View(python, tuple(shown), tuple(path for path in emptied if Path(path).is_dir()))


def _libraries(path: str) -> str:
    """The directory itself, or what of it holds libraries only, where the system sorts them by architecture."""
    by_machine = Path(path, str(sysconfig.get_config_var("MULTIARCH")))
    return str(by_machine) if by_machine.is_dir() and not Path(path).is_symlink() else path
