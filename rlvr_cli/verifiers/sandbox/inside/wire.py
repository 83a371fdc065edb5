"""Messages over pipes: four bytes of length, then one byte of kind and the content."""

import os
import struct

HEADER = struct.Struct("<I")


def read_exactly(fd: int, size: int) -> bytes | None:
    """So many bytes; None when the pipe ends before."""
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_message(fd: int, longest: int = 2**32 - 1) -> bytes | None:
    """The next message; None when the pipe ends. Raises ValueError for one that is longer than allowed."""
    header = read_exactly(fd, HEADER.size)
    if header is None:
        return None
    (size,) = HEADER.unpack(header)
    if size > longest:
        raise ValueError(f"a message of {size} bytes")
    return read_exactly(fd, size)


def write_message(fd: int, content: bytes) -> None:
    """Send one message whole. Raises OSError when nobody reads."""
    left = memoryview(HEADER.pack(len(content)) + content)
    while left:
        left = left[os.write(fd, left) :]
