"""What the sandbox asks of bubblewrap and of control groups, whatever this machine has of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rlvr_cli.verifiers.sandbox import bubblewrap, cgroups
from rlvr_cli.verifiers.sandbox.view import view


def test_bubblewrap_is_asked_for_every_namespace_and_nothing_writable(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, path=None: "/usr/bin/bwrap")
    words = bubblewrap.bubblewrap(view(), {"/box": 100}, "/package", ["python"])
    for kind in ("user", "pid", "net", "ipc", "uts"):
        assert f"--unshare-{kind}" in words
    assert {"--die-with-parent", "--clearenv", "--as-pid-1", "--new-session"} <= set(words)
    assert words[words.index("/box") - 3 : words.index("/box") + 1] == ["--size", "100", "--tmpfs", "/box"]
    binds = [words[place + 1] for place, word in enumerate(words) if word in ("--bind", "--dev-bind")]
    assert all(path.startswith("/dev/") for path in binds)
    assert words[-2:] == ["--", "python"]


def fake(root, *, controllers=None, files=()):
    root.mkdir(parents=True, exist_ok=True)
    if controllers is not None:
        (root / "cgroup.controllers").write_text(controllers)
        (root / "cgroup.subtree_control").write_text(controllers)
    for name in files:
        (root / name).write_text("")


def kernel_files(monkeypatch, *names):
    """Have new groups come with their files, as the kernel's do."""
    plain = Path.mkdir

    def mkdir(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        if self.name.startswith("rlvr-sandbox-"):
            for name in names:
                (self / name).write_text("")

    monkeypatch.setattr(Path, "mkdir", mkdir)


def test_control_groups_of_version_2(tmp_path, monkeypatch):
    fake(tmp_path, controllers="cpu memory pids")
    fake(tmp_path / "user" / "shell", controllers="")
    fake(tmp_path / "user", controllers="memory pids")
    kernel_files(monkeypatch, "cgroup.procs", "memory.max", "pids.max", "memory.swap.max")
    group = cgroups.make(1000, 20, root=tmp_path, own="0::/user/shell\n")
    assert group is not None and group.memory and group.processes
    (directory,) = group.directories
    assert directory.parent == tmp_path / "user"  # where the controllers are handed down
    assert (directory / "memory.max").read_text() == "1000"
    assert (directory / "pids.max").read_text() == "20"
    assert group.add(123)
    assert (directory / "cgroup.procs").read_text() == "123"


def test_control_groups_of_version_1(tmp_path, monkeypatch):
    for controller in ("memory", "pids"):
        fake(tmp_path / controller / "own")
    kernel_files(monkeypatch, "cgroup.procs", "memory.limit_in_bytes", "pids.max")
    group = cgroups.make(1000, 20, root=tmp_path, own="4:memory:/own\n3:cpu,pids:/own\n")
    assert group is not None and group.memory and group.processes
    assert [directory.parent.parent.name for directory in group.directories] == ["memory", "pids"]
    assert (group.directories[1] / "pids.max").read_text() == "20"


def test_without_rights_there_is_no_control_group(tmp_path):
    assert cgroups.make(1000, 20, root=tmp_path / "none", own="0::/\n4:memory:/\n") is None


def test_groups_of_dead_workers_are_removed(tmp_path, monkeypatch):
    fake(tmp_path, controllers="memory pids")
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    (tmp_path / f"rlvr-sandbox-{dead.pid}-1").mkdir()
    (tmp_path / f"rlvr-sandbox-{os.getpid()}-0").mkdir()
    kernel_files(monkeypatch, "cgroup.procs", "memory.max", "pids.max")
    assert cgroups.make(1000, 20, root=tmp_path, own="0::/\n") is not None
    assert not (tmp_path / f"rlvr-sandbox-{dead.pid}-1").exists()
    assert (tmp_path / f"rlvr-sandbox-{os.getpid()}-0").exists()
