"""Outputs: a named file is replaced whole or not at all, and its unfinished work can be gone on with.

Work goes to `.NAME.partial` beside the output: plain JSONL, locked, its first line a head with the digest of all that
the work depends on. At the end the final format is written to `.NAME.tmp`, synced and renamed into place.
"""

import fcntl
import gzip
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Protocol, cast

from rlvr_cli.errors import UsageError, UserError
from rlvr_cli.records import Record
from rlvr_cli.streams import jsonl
from rlvr_cli.streams.jsonl import BadLine, dumps, loads

FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")


class ClosedPipeError(Exception):
    """Whoever read standard output has gone, as `head` does. No failure."""


@dataclass(frozen=True)
class Unit:
    """How records fall into units of work, which a resumed run counts.

    One input record is one unit and yields `size` consecutive output records. `identity` gives the same string on the
    input record and on each of its output records; `size` is asked of an output record. A resumed run keeps a multiple
    of `granule` units: what is made in batches begins again where a batch began.
    """

    identity: Callable[[Record], str]
    size: Callable[[Record], int]
    granule: int = 1


class Output(Protocol):
    """Where records go: `start`, then `write` for each complete unit, then `commit`; `close` in any case.

    `already` and `records_already` count what an earlier run has finished, once `done` was called.
    """

    already: int
    records_already: int

    def start(self, command: str, digest: str) -> None:
        """Ready for the first record. `digest` stands for all that the work depends on."""

    def done(self, unit: Unit) -> Iterator[str]:
        """The identities of the units that an earlier run has finished, in order."""

    def write(self, lines: list[bytes]) -> None:
        """Add whole lines, visible to others when this returns."""

    def commit(self) -> None:
        """All records are there: finish the output."""

    def close(self) -> None:
        """Let go. What was not committed is no output."""


def format_of(name: str, override: str | None = None) -> str:
    """The format that a file's ending names, unless overridden. Raises UsageError for an unknown ending."""
    if override is not None:
        return override
    for known in FORMATS:
        if name.endswith(f".{known}"):
            return known
    raise UsageError(f"{name}: the ending names no format; end it in .{', .'.join(FORMATS)}, or say --format")


class FileOutput:
    """A named output. Opening it checks and locks its place, before any input is read.

    `resume` goes on from unfinished work, `force` discards it; with neither, finding some is an error. Work without a
    single record is none.
    """

    def __init__(self, name: str, form: str, *, resume: bool = False, force: bool = False) -> None:
        self.name = name
        self.already = 0  # units found finished
        self.records_already = 0
        self._form = form
        with _told(name):
            self._target = _checked_target(name)
        self._partial = self._target.with_name(f".{self._target.name}.partial")
        self._file = _locked(self._partial, name)
        self._head = self._file.readline()
        self.unfinished = bool(self._file.read(1))  # whether there is work that --resume can go on from
        self._resumed = resume and self.unfinished
        if self.unfinished and not resume and not force:
            self._file.close()
            raise UserError(
                f"{name}: an unfinished run left {self._partial}; --resume goes on from it, --force starts over"
            )

    def start(self, command: str, digest: str) -> None:
        """Write the head, or compare it with the one found. Raises UserError for work on something else."""
        if self._resumed:
            self._compare(digest)
            return
        self.unfinished = False
        self._head = dumps({"rlvr_partial": digest, "command": command}) + b"\n"
        with _told(self.name):
            self._cut(0)
            self._file.write(self._head)
            self._file.flush()

    def _compare(self, digest: str) -> None:
        try:
            found = loads(self._head)["rlvr_partial"]
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self._partial}: is no unfinished work of rlvr; move it away") from error
        if found != digest:
            raise UserError(
                f"{self.name}: {self._partial} was made with other options, inputs or policy; "
                "call the command as before, or start over with --force"
            )

    def done(self, unit: Unit) -> Iterator[str]:
        """The identities of the finished units. What follows the last of them is cut off at once."""
        if self._resumed:
            end = offset = len(self._head)
            records = 0
            for number, (_, size, length) in enumerate(self._units(unit), 1):
                offset += length
                records += size
                if number % unit.granule == 0:
                    self.already, self.records_already, end = number, records, offset
            self._cut(end)
            self.unfinished = self.already > 0
        return (identity for identity, _, _ in islice(self._units(unit), self.already))

    def _units(self, unit: Unit) -> Iterator[tuple[str, int, int]]:
        with self._partial.open("rb") as file:  # a file of its own, since this one is written to meanwhile
            file.readline()
            yield from complete_units(file, unit)

    def _cut(self, offset: int) -> None:
        self._file.seek(offset)
        self._file.truncate()

    def write(self, lines: list[bytes]) -> None:
        """Add the lines to the work."""
        self.unfinished = True
        with _told(self.name):
            self._file.writelines(lines)
            self._file.flush()

    def commit(self) -> None:
        """Write the final format beside the target, sync it, rename it into place, and drop the work."""
        temporary = self._target.with_name(f".{self._target.name}.tmp")
        try:
            with _told(self.name):
                with temporary.open("wb") as file:
                    _write_final(self._file, len(self._head), file, self._form, self.name)
                _sync(temporary)
                temporary.replace(self._target)
                _sync(self._target.parent)
        finally:
            temporary.unlink(missing_ok=True)
        self.unfinished = False

    def close(self) -> None:
        """Let go. Work stays for --resume, unless it is finished or holds no record."""
        if self._file.closed:
            return
        if not self.unfinished:
            self._partial.unlink(missing_ok=True)
        with suppress(OSError):  # a full disk was told of when it was written to
            self._file.close()


def _checked_target(name: str) -> Path:
    target = Path(name).resolve()  # through a symbolic link: what it points to is replaced
    if not target.parent.is_dir():
        raise UserError(f"{name}: there is no directory {Path(name).parent}; make it first")
    if target.is_dir():
        raise UserError(f"{name}: is a directory; name a file in it")
    if target.exists() and not target.is_file():
        raise UserError(f"{name}: is no regular file; leave -o out and redirect standard output to it")
    return target


def _locked(path: Path, name: str) -> IO[bytes]:
    """The work file, open and ours alone."""
    while True:
        try:
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")
        except OSError as error:
            raise UserError(
                f"{name}: cannot be written ({error.strerror}); check the directory and its permissions"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise UserError(f"{name}: another run is writing it; wait for it or name another file") from error
        with suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        file.close()  # its last owner removed it between our opening and our locking it


def _sync(path: Path) -> None:
    """Have a file's content, or a directory's names, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Failures of the system, such as a full disk, as errors that name the output."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{name}: cannot be written ({error.strerror or error}); check the place and its permissions"
        ) from error


def _write_final(work: IO[bytes], start: int, file: IO[bytes], form: str, name: str) -> None:
    """Turn work, JSONL from the offset `start` on, into the final format. `file` may end up closed."""
    if form == "parquet":
        from rlvr_cli.streams import parquet

        parquet.write(lambda: _records(work, start, name), file)
        return
    work.seek(start)
    stream = _compressed(file, form)
    shutil.copyfileobj(work, stream, 1 << 20)
    if stream is not file:
        stream.close()


def _records(work: IO[bytes], start: int, name: str) -> Iterator[Record]:
    work.seek(start)
    for item in jsonl.read(work, name):
        if isinstance(item, BadLine):
            raise UserError(f"{item.where}: the unfinished work {item.reason}")
        yield item


def complete_units(lines: Iterable[bytes], unit: Unit) -> Iterator[tuple[str, int, int]]:
    """Identity, number of records and length in bytes of each complete unit at the head of `lines`.

    Stops at the first line that is torn, unreadable or of another unit than it should be: from there all is owed again.
    """
    identity, size, left, length = "", 0, 0, 0
    for line in lines:
        record = _whole_record(line)
        if record is None:
            return
        if left == 0:
            identity, size, length = unit.identity(record), unit.size(record), 0
            left = size
        elif unit.identity(record) != identity:
            return
        left -= 1
        length += len(line)
        if left == 0:
            yield identity, size, length


def _whole_record(line: bytes) -> Record | None:
    if not line.endswith(b"\n"):
        return None
    try:
        value = loads(line)
    except ValueError:
        return None
    return Record(value) if isinstance(value, dict) else None


class StandardOutput:
    """Records to a descriptor that nothing else writes to. Each unit is flushed; Parquet comes whole at the end."""

    def __init__(self, descriptor: int, form: str) -> None:
        self.already = self.records_already = 0
        self._raw = os.fdopen(descriptor, "wb")
        self._form = form
        self._spool = tempfile.TemporaryFile(prefix="rlvr-") if form == "parquet" else None  # noqa: SIM115
        self._stream = self._spool or _compressed(self._raw, form)

    def start(self, command: str, digest: str) -> None:
        """Nothing is kept between runs, so nothing to compare."""

    def done(self, unit: Unit) -> Iterator[str]:
        """Nothing."""
        return iter(())

    def write(self, lines: list[bytes]) -> None:
        """Pass the lines on. Raises ClosedPipeError when nobody reads any more."""
        with _closed_pipe():
            self._stream.write(b"".join(lines))
            self._stream.flush()
            self._raw.flush()

    def commit(self) -> None:
        """Write what is owed: the end of a compressed stream, or the Parquet file."""
        with _closed_pipe():
            if self._spool is not None:
                with tempfile.TemporaryDirectory(prefix="rlvr-") as directory:
                    final = Path(directory) / "stdout"
                    with final.open("wb") as file:
                        _write_final(self._spool, 0, file, self._form, "<stdout>")
                    with final.open("rb") as file:
                        shutil.copyfileobj(file, self._raw)
            elif self._stream is not self._raw:
                self._stream.close()
            if not self._raw.closed:
                self._raw.flush()

    def close(self) -> None:
        """Let go; a pipe that is closed already is no matter."""
        for stream in (self._stream, self._raw):
            with suppress(OSError, ValueError):
                stream.close()


@contextmanager
def _closed_pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedPipeError from error


def _compressed(raw: IO[bytes], form: str) -> IO[bytes]:
    """A stream that writes to `raw` in the compression of a JSONL format. Closing it leaves a gzip's `raw` open."""
    if form == "jsonl.gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename=""))
    if form == "jsonl.zst":
        import pyarrow as pa

        return pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd")  # type: ignore[no-any-return]
    return raw
