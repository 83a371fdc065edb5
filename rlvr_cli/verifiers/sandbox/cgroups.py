"""Control groups, versions 1 and 2: one for a worker's sandboxes, where this process may make one.

They limit the memory and the number of processes of a whole sandbox together. Elsewhere the number is limited for the
user namespace (RLIMIT_NPROC), and the worker watches the memory. A group left behind by a worker that was killed is
removed by the next one that makes a group beside it.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_NAME = re.compile(r"rlvr-sandbox-(\d+)-\d+")
_made = 0


@dataclass(frozen=True)
class Group:
    """The directories of one group: one in version 2, one a controller in version 1; what they limit."""

    directories: tuple[Path, ...]
    memory: bool
    processes: bool

    def add(self, pid: int) -> bool:
        """Move a process in; what it starts afterwards is in it too. Whether that was allowed."""
        try:
            for directory in self.directories:
                (directory / "cgroup.procs").write_text(str(pid))
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove it, once its processes are dead."""
        for directory in self.directories:
            with suppress(OSError):
                directory.rmdir()


def make(memory: int, processes: int, root: Path = ROOT, own: str | None = None) -> Group | None:
    """A new group limited to bytes of memory and a number of processes; None where there can be none."""
    global _made
    _made += 1
    name = f"rlvr-sandbox-{os.getpid()}-{_made}"
    if own is None:
        with suppress(OSError):
            own = Path("/proc/self/cgroup").read_text()
    paths = _own_paths(own or "")
    group = (
        _unified(root, paths.get("", "/"), name, memory, processes) if (root / "cgroup.controllers").exists() else None
    )
    return group or _separate(root, paths, name, memory, processes)


def _own_paths(text: str) -> dict[str, str]:
    """The group that this process is in, by controller; version 2 has the empty name."""
    paths = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _unified(root: Path, own: str, name: str, memory: int, processes: int) -> Group | None:
    """Version 2: beside or above this process's own group, wherever the controllers are handed down."""
    here = root / own.strip("/")
    for parent in (here, *here.parents):
        if not parent.is_relative_to(root):
            break
        try:
            handed_down = (parent / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if "memory" not in handed_down and "pids" not in handed_down:
            continue
        files = {"memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 0} if "memory" in handed_down else {}
        if "pids" in handed_down:
            files["pids.max"] = processes
        directory = _made_with(parent, name, files)
        if directory is not None:
            return Group((directory,), "memory" in handed_down, "pids" in handed_down)
    return None


def _separate(root: Path, paths: dict[str, str], name: str, memory: int, processes: int) -> Group | None:
    """Version 1: below this process's own group of each controller."""
    found: dict[str, Path] = {}
    for controller, files in (
        ("memory", {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}),
        ("pids", {"pids.max": processes}),
    ):
        if controller in paths:
            directory = _made_with(root / controller / paths[controller].strip("/"), name, files)
            if directory is not None:
                found[controller] = directory
    return Group(tuple(found.values()), "memory" in found, "pids" in found) if found else None


def _made_with(parent: Path, name: str, files: dict[str, int]) -> Path | None:
    """A new directory below `parent`, limited; None when it cannot be had. The first file's limit has to hold."""
    _remove_dead(parent)
    directory = parent / name
    try:
        directory.mkdir()
    except OSError:
        return None
    try:
        if not os.access(directory / "cgroup.procs", os.W_OK):
            raise OSError("no process can be moved in")
        for number, (file, value) in enumerate(files.items()):
            try:
                (directory / file).write_text(str(value))
            except OSError:
                if number == 0:  # the others, such as the limit of swap, are not there on every machine
                    raise
    except OSError:
        with suppress(OSError):
            directory.rmdir()
        return None
    return directory


def _remove_dead(parent: Path) -> None:
    """Remove the groups of workers that are gone."""
    with suppress(OSError):
        for entry in parent.iterdir():
            match = _NAME.fullmatch(entry.name)
            if match and not Path(f"/proc/{match[1]}").exists():
                with suppress(OSError):
                    entry.rmdir()


def resident(pid: int) -> int:
    """The bytes of memory that all processes below this one hold now, beyond what each has from it.

    Memory that they share since they were forked from each other counts for each: it cannot be told apart cheaply.
    """
    total = 0
    waiting = [pid]
    own = _anonymous(Path(f"/proc/{pid}"))
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        total += max(0, _anonymous(process) - own)
        with suppress(OSError, ValueError):
            for thread in (process / "task").iterdir():
                waiting += [int(child) for child in (thread / "children").read_text().split()]
    return total


def _anonymous(process: Path) -> int:
    """The bytes that a process holds and no file does."""
    with suppress(OSError, ValueError, IndexError):
        _, resident, shared = (process / "statm").read_text().split()[:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0
