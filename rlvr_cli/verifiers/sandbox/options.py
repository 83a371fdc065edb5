"""What a user may set of the sandbox."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Options:
    """The limits of one program, for all of its tests together unless said otherwise.

    seconds: wall time. memory: MiB, of each process and, where a control group can be had, of all of them together.
    output: bytes that one test may print or give back. sandbox: false runs programs unprotected.
    isolation: how programs are isolated, as `prepare` found it: `bwrap`, `unshare`, `none`, or empty before that.
    """

    seconds: float = 10.0
    memory: int = 1024
    output: int = MIB
    sandbox: bool = True
    isolation: str = ""
    own_user: bool = False  # started by root, programs run as a user id that nobody else has


# Not set by users: what is enough for any test, and harmless.
DISK = 64 * MIB  # the program's directory, in memory
SHARED_MEMORY = 16 * MIB
STREAMS = 128 * MIB  # one test's input and output
PROCESSES = 64  # threads count too
INTERPRETER = 64 * MIB  # of address space, beyond what the program asks for
