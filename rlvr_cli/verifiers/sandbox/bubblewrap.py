"""The same sandbox, made by bubblewrap."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvr_cli.verifiers.sandbox.view import View

_PLACES = "/usr/bin:/usr/local/bin:/bin"


def find() -> str | None:
    """Where bubblewrap is, if it is."""
    return shutil.which("bwrap") or shutil.which("bwrap", path=_PLACES)


def bubblewrap(view: View, sizes: Mapping[str, int], package: str, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` in a sandbox, with the package `inside` at /rlvr."""
    words = [find() or "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]
    words += ["--uid", "1000", "--gid", "1000", "--hostname", "box", "--cap-drop", "ALL"]
    for path in view.shown:
        linked = Path(path).is_symlink()
        words += ["--symlink", str(Path(path).readlink()), path] if linked else ["--ro-bind-try", path, path]
    words += ["--ro-bind", package, "/rlvr/inside"]
    for path in view.emptied:
        words += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for name in ("null", "zero", "full", "random", "urandom"):
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name in ("stdin", "stdout"):
        words += ["--symlink", f"/io/{name}", f"/dev/{name}"]
    for path, size in sizes.items():
        words += ["--perms", "1777", "--size", str(size), "--tmpfs", path]
    return [*words, "--remount-ro", "/", "--chdir", "/box", "--", *command]
