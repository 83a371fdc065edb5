"""Inputs: which files the arguments mean, and the records in them whatever their compression."""

import glob
import gzip
import hashlib
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.records import Record
from rlvr_cli.streams import jsonl
from rlvr_cli.streams.jsonl import BadLine

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
PROBLEMS = Path(__file__).parents[1] / "tiny" / "problems"
DEFAULT = "tiny:learnable"
STDIN = "<stdin>"


@dataclass(frozen=True)
class Source:
    """One input: the name that messages show, and its path; no path is standard input."""

    name: str
    path: Path | None = None

    @property
    def is_file(self) -> bool:
        """Whether it can be read twice: a regular file, no pipe."""
        return self.path is not None and self.path.is_file()


def expand(arguments: list[str]) -> list[Source]:
    """The sources that the arguments mean: files, globs, directories of shards, `-`, `tiny:NAME`.

    Without arguments: standard input, unless that is a terminal or /dev/null; then the embedded problems, said on
    standard error. Raises UserError for a name behind which there is nothing.
    """
    if not arguments:
        if _stdin_is_there():
            return [Source(STDIN)]
        print(f"no input named: reading the embedded problems, {DEFAULT}", file=sys.stderr)
        return _tiny(DEFAULT)
    sources = [source for argument in arguments for source in _expand_one(argument)]
    if sum(source.path is None for source in sources) > 1:
        raise UserError("-: standard input can be read only once; name it once")
    return sources


def _expand_one(argument: str) -> list[Source]:
    if argument == "-":
        return [Source(STDIN)]
    if argument.startswith("tiny:") and not Path(argument).exists():
        return _tiny(argument)
    path = Path(argument)
    if path.is_dir():
        return _shards(path)
    if path.exists():
        return [Source(argument, path)]
    if glob.has_magic(argument):
        found = [Source(name, Path(name)) for name in sorted(glob.glob(argument, recursive=True))]  # noqa: PTH207 (a pattern may be absolute)
        if found:
            return found
        raise UserError(f"{argument}: no file matches; check the pattern")
    raise UserError(f"{argument}: no such file or directory; check the name")


def _shards(directory: Path) -> list[Source]:
    found = sorted(
        path for path in directory.iterdir() if path.name.endswith(ENDINGS) and not path.name.startswith(".")
    )
    if not found:
        tree = next(directory.rglob("*.json"), None)
        hint = f"; a tree of .json files is named by a pattern, '{directory}/**/*.json'" if tree else ""
        raise UserError(
            f"{directory}: no records in this directory; expected files ending in {', '.join(ENDINGS)}{hint}"
        )
    return [Source(str(path), path) for path in found]


def _tiny(argument: str) -> list[Source]:
    path = PROBLEMS / f"{argument.removeprefix('tiny:')}.jsonl"
    if not path.is_file():
        names = ", ".join(sorted(f"tiny:{found.stem}" for found in PROBLEMS.glob("*.jsonl")))
        raise UserError(f"{argument}: no such embedded problems; there are {names}")
    return [Source(argument, path)]


def _stdin_is_there() -> bool:
    if sys.stdin is None:  # closed by the caller
        return False
    try:
        found = os.fstat(0)
        null = Path(os.devnull).stat()
    except OSError:
        return False
    return not os.isatty(0) and not (stat.S_ISCHR(found.st_mode) and found.st_rdev == null.st_rdev)


def digest(source: Source) -> str:
    """A digest of the content; of what can be read only once, the word `stream`."""
    if source.path is None or not source.is_file:
        return "stream"
    with _opened(source) as file:
        return hashlib.file_digest(cast(io.FileIO, file), lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def spooled(source: Source, stack: ExitStack) -> Source:
    """The source as a regular file: what can be read only once is copied to one that lives as long as `stack`."""
    if source.is_file:
        return source
    with _opened(source) as file:
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="rlvr-"))  # noqa: SIM115
        shutil.copyfileobj(file, copy)
        copy.flush()
    return Source(source.name, Path(copy.name))


def read(source: Source) -> Iterator[Record | BadLine]:
    """The records of one source, and what is none of it. The first bytes tell the format, not the name.

    Raises UserError when the file cannot be read, is truncated or corrupt.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(_opened(source))
        magic = _first_bytes(raw, source)
        if magic == b"PAR1":
            yield from _read_parquet(raw, magic, source, stack)
            return
        stream = cast(IO[bytes], io.BufferedReader(_Rejoined(magic, raw), 1 << 17))
        kind = "file"
        if magic[:2] == b"\x1f\x8b":
            kind, stream = "gzip", cast(IO[bytes], gzip.GzipFile(fileobj=stream))
        elif magic == b"\x28\xb5\x2f\xfd":
            kind, stream = "zstd", _zstd(stream)
        read_lines = jsonl.read_json if source.name.endswith(".json") else jsonl.read
        yield from read_lines(_lines(stream, source, kind), source.name)


def side(paths: list[str]) -> list[Source]:
    """The sources of a side input (`--stats`, `--base`): as `expand`, but for standard input."""
    if "-" in paths:
        raise UserError("-: standard input is for the records themselves; name a file here")
    return [source for path in paths for source in _expand_one(path)]


def read_all(paths: list[str], check: Callable[[Record], None]) -> Iterator[Record]:
    """The records of a side input, each checked. Any error stops."""
    for source in side(paths):
        for item in read(source):
            if isinstance(item, BadLine):
                raise RecordError(f"{item.where}: {item.reason}")
            check(item)
            yield item


def _opened(source: Source) -> IO[bytes]:
    try:
        if source.path is None:
            return cast(IO[bytes], io.FileIO(0, closefd=False))
        return source.path.open("rb", buffering=0)
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: OSError) -> UserError:
    return UserError(f"{source.name}: cannot be read ({error.strerror or error}); check the file and its permissions")


def _first_bytes(raw: IO[bytes], source: Source) -> bytes:
    found = b""
    try:
        while len(found) < 4 and (more := raw.read(4 - len(found))):  # a pipe may give them one by one
            found += more
    except OSError as error:
        raise _unreadable(source, error) from error
    return found


class _Rejoined(io.RawIOBase):
    """A raw stream with the bytes that were read ahead put back in front of it."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return cast(int, cast(io.RawIOBase, self._rest).readinto(buffer))
        part, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _zstd(stream: IO[bytes]) -> IO[bytes]:
    import pyarrow as pa

    return cast(IO[bytes], io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")))


def _lines(stream: Iterable[bytes], source: Source, kind: str) -> Iterator[bytes]:
    number = 0
    try:
        for line in stream:
            number += 1
            yield line
    except (EOFError, OSError, zlib.error) as error:
        raise UserError(
            f"{source.name}: truncated or corrupt {kind} data after line {number} ({error}); make the file again"
        ) from error


def _read_parquet(raw: IO[bytes], magic: bytes, source: Source, stack: ExitStack) -> Iterator[Record | BadLine]:
    from rlvr_cli.streams import parquet

    if source.is_file:
        file = cast(IO[bytes], stack.enter_context(cast(Path, source.path).open("rb")))
    else:  # the end of a Parquet file is read first, so a pipe is copied
        file = cast(IO[bytes], stack.enter_context(tempfile.TemporaryFile(prefix="rlvr-")))  # noqa: SIM115
        file.write(magic)
        shutil.copyfileobj(raw, file)
        file.seek(0)
    yield from parquet.read(file, source.name)
