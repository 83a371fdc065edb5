"""What a process gives up before it runs a policy's code: capabilities, dangerous system calls, resources.

The system call filter is a second wall behind the namespaces. It takes away what namespaces do not cover (sockets to
the hypervisor, kernel keyrings, shared memory that no limit counts) and the calls that have broken out of namespaces
before (new namespaces, mounts, bpf, io_uring, ptrace). On machines whose call numbers are not listed it is left out.
"""

import ctypes
import os
import resource
import struct
from functools import lru_cache

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

# The calls that are refused: name, number on x86_64, number on aarch64 (None: there is no such call).
_REFUSED: tuple[tuple[str, int | None, int | None], ...] = (
    ("ptrace", 101, 117),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("process_madvise", 440, 440),
    ("pidfd_getfd", 438, 438),
    ("kcmp", 312, 272),
    ("memfd_create", 319, 279),
    ("memfd_secret", 447, 447),
    ("shmget", 29, 194),
    ("shmat", 30, 196),
    ("semget", 64, 190),
    ("msgget", 68, 186),
    ("mq_open", 240, 180),
    ("userfaultfd", 323, 282),
    ("add_key", 248, 217),
    ("request_key", 249, 218),
    ("keyctl", 250, 219),
    ("bpf", 321, 280),
    ("perf_event_open", 298, 241),
    ("io_uring_setup", 425, 425),
    ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427),
    ("unshare", 272, 97),
    ("setns", 308, 268),
    ("mount", 165, 40),
    ("umount2", 166, 39),
    ("pivot_root", 155, 41),
    ("chroot", 161, 51),
    ("open_tree", 428, 428),
    ("move_mount", 429, 429),
    ("fsopen", 430, 430),
    ("fsconfig", 431, 431),
    ("fsmount", 432, 432),
    ("fspick", 433, 433),
    ("mount_setattr", 442, 442),
    ("name_to_handle_at", 303, 264),
    ("open_by_handle_at", 304, 265),
    ("personality", 135, 92),
    ("init_module", 175, 105),
    ("finit_module", 313, 273),
    ("delete_module", 176, 106),
    ("kexec_load", 246, 104),
    ("kexec_file_load", 320, 294),
    ("quotactl", 179, 60),
    ("swapon", 167, 224),
    ("swapoff", 168, 225),
    ("acct", 163, 89),
    ("reboot", 169, 142),
    ("syslog", 103, 116),
    ("fanotify_init", 300, 262),
    ("vmsplice", 278, 75),
    ("sethostname", 170, 161),
    ("setdomainname", 171, 162),
    ("settimeofday", 164, 170),
    ("adjtimex", 159, 171),
    ("clock_settime", 227, 112),
    ("clock_adjtime", 305, 266),
    ("lookup_dcookie", 212, 18),
    ("iopl", 172, None),
    ("ioperm", 173, None),
    ("modify_ldt", 154, None),
)
# machine: column above, audit architecture, clone, clone3, socket
_MACHINES = {"x86_64": (1, 0xC000003E, 56, 435, 41), "aarch64": (2, 0xC00000B7, 220, 435, 198)}
_NEW_NAMESPACES = 0x7E020000
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6; vsock, netlink, packet and kernel crypto sockets are refused
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97


def prctl(option: int, value: int = 0) -> int:
    """The system call; the result is negative on failure."""
    return int(libc.prctl(option, value, 0, 0, 0))


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, at once when it is dead already. `parent` is 0 in another pid namespace."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def drop_capabilities() -> None:
    """Give up every capability for good, also those that a program could bring. Raises OSError."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        if prctl(PR_CAPBSET_DROP, capability) != 0:  # the kernel knows no more
            break
    header = struct.pack("<Ii", 0x20080522, 0)
    if libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def filter_calls(machine: str) -> bool:
    """Install the system call filter, which children inherit; whether there is one for this machine."""
    program = filter_for(machine)
    if program is None:
        return False
    instructions = ctypes.create_string_buffer(program)
    pointer = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions)))
    return bool(libc.prctl(PR_SET_SECCOMP, 2, ctypes.addressof(pointer), 0, 0) == 0)


@lru_cache(maxsize=1)
def filter_for(machine: str) -> bytes | None:
    """The filter as classic BPF: load architecture, call number and first argument; compare; decide."""
    if machine not in _MACHINES:
        return None
    column, architecture, clone, clone3, socket = _MACHINES[machine]

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("<HBBI", code, yes, no, value)

    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    steps = [step(load, 4), step(equal, architecture, 1), step(give, _KILL), step(load, 0)]
    if machine == "x86_64":  # the x32 calls have numbers of their own
        steps += [step(at_least, 0x40000000, 0, 1), step(give, _KILL)]
    for entry in _REFUSED:
        number = entry[column]
        if isinstance(number, int):
            steps += [step(equal, number, 0, 1), step(give, _ERRNO | _EPERM)]
    # its flags lie in memory, where a filter cannot look: the C library falls back on clone
    steps += [step(equal, clone3, 0, 1), step(give, _ERRNO | _ENOSYS)]
    steps += [step(equal, clone, 0, 4), step(load, 16), step(any_bit, _NEW_NAMESPACES, 0, 1)]
    steps += [step(give, _ERRNO | _EPERM), step(give, _ALLOW)]
    steps += [step(equal, socket, 0, 2 + len(_FAMILIES)), step(load, 16)]
    steps += [step(equal, family, len(_FAMILIES) - place) for place, family in enumerate(_FAMILIES)]
    steps += [step(give, _ERRNO | _EAFNOSUPPORT), step(give, _ALLOW)]
    return b"".join(steps)


def limit(seconds: float, memory: int, file_size: int, processes: int, files: int) -> None:
    """Hard limits for this process and its children: CPU seconds, bytes of address space and of a file, counts."""
    wanted = {
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: file_size,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_NOFILE: files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for which, value in wanted.items():
        limit_one(which, value)


def limit_one(which: int, value: int) -> None:
    """One hard limit, or less where there is a lower one already."""
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
