"""Enter the namespaces and build the small file system that a program sees, by system calls alone.

The process that calls `enter` has a parent outside that calls `map_ids` when told. Started by root, the program runs
as a user id that nobody else has, so that limits counted by user bind it; started by a plain user, as that user.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

from .lockdown import PR_SET_DUMPABLE, libc, prctl

_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_RELATIME = 1 << 21
_DETACH = 2
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

USER = 1000  # the program's id in the sandbox
_DEVICES = ("null", "zero", "full", "random", "urandom")


def enter(ready: int, go: int, view: dict[str, Any], machine: str) -> None:
    """Unshare, wait to be given ids, and see only what `view` lists.

    shown: paths of the outside, read-only; emptied: directories of those, shown empty; sizes: directories to write in.

    `ready` and `go` are pipes to the parent, which has to call `map_ids` between the two. Raises OSError.
    """
    _call("unshare", libc.unshare(_NEW_USER | _NEW_MOUNTS | _NEW_PIDS | _NEW_NET | _NEW_IPC | _NEW_UTS))
    prctl(PR_SET_DUMPABLE, 1)  # else a parent that is no root cannot write the map
    os.write(ready, b"u")
    if os.read(go, 1) != b"g":
        raise OSError("no user ids could be mapped")
    _build(view, machine)


def map_ids(child: int, outside: int) -> None:
    """Give the child's user namespace its ids: USER stands for `outside`; root keeps 0 too, to set things up with."""
    me, group = os.geteuid(), os.getegid()
    process = Path(f"/proc/{child}")
    if outside != me:
        (process / "uid_map").write_text(f"0 {me} 1\n{USER} {outside} 1\n")
        (process / "gid_map").write_text(f"0 {group} 1\n{USER} {outside} 1\n")
    else:
        (process / "setgroups").write_text("deny")
        (process / "uid_map").write_text(f"{USER} {me} 1\n")
        (process / "gid_map").write_text(f"{USER} {group} 1\n")


def become_user() -> None:
    """Change from the root of the sandbox to its user, where the two differ. Raises OSError."""
    if os.getuid() != USER:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)


def _build(view: dict[str, Any], machine: str) -> None:
    _mount("none", "/", None, _REC | _PRIVATE)
    _mount("root", "/tmp", "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    Path("/tmp/old").mkdir()
    _call("pivot_root", libc.syscall(_PIVOT_ROOT[machine], b"/tmp", b"/tmp/old"))
    os.chdir("/")
    for path in [*view["shown"], *(f"/dev/{name}" for name in _DEVICES)]:
        _show(path)
    for name in ("stdin", "stdout"):
        Path(f"/dev/{name}").symlink_to(f"/io/{name}")
    for path in view["emptied"]:
        _mount("empty", path, "tmpfs", _RDONLY | _NOSUID | _NODEV, "size=4k")
    for path, size in view["sizes"].items():
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount("scratch", path, "tmpfs", _NOSUID | _NODEV, f"size={size},nr_inodes=10000,mode=1777")
    _call("umount2", libc.umount2(b"/old", _DETACH))
    Path("/old").rmdir()
    _mount(None, "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)


def _show(path: str) -> None:
    """Show a file, directory or link of the outside at the same path, read-only."""
    source, target = Path(f"/old{path}"), Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    if not source.exists():
        return
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.touch()
    _mount(str(source), path, None, _BIND | _REC)
    device = path.startswith("/dev/")
    _make_read_only(path, _RDONLY | _NOSUID | (0 if device else _NODEV))


def _make_read_only(path: str, flags: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)  # these flags have the same bits as the older call's
    where = path.encode()
    done = libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, where, _AT_RECURSIVE, attributes, ctypes.c_size_t(32))
    if done == 0:
        return
    kept = os.statvfs(path).f_flag  # an older kernel: what the outside forbids has to be named again
    flags |= kept & (_NOSUID | _NODEV | _NOEXEC | 1024 | 2048) | (_RELATIME if kept & 4096 else 0)
    _mount(None, path, None, _REMOUNT | _BIND | flags)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, data)]
    done = libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    _call(f"mount {target}", done)


def _call(name: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
