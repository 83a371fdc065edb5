"""Records that wait for one before them, in order: a few in memory, the others in an unnamed temporary file."""

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Generic, Self, TypeVar

from rlvr_cli.records import Record
from rlvr_cli.streams.jsonl import dumps, loads

T = TypeVar("T")
Ticket = tuple[int, int]  # offset and length in the spool

HELD = 64 << 20  # bytes, about, that may wait in memory
SPOOLED = 1 << 30  # bytes that may wait in the temporary file


@dataclass(eq=False, slots=True)
class _Place(Generic[T]):
    """One in the line: work, then the record that came of it, then the ticket for that record."""

    work: T | None
    weight: int  # in memory
    record: Record | None = None
    ticket: Ticket | None = None


class Line(Generic[T]):
    """Pieces of work, which become records in any order and leave in the one that they came in; a context manager.

    `ready` gives the record that came of a piece of work, or None while it is not done; once it gave a record it is
    not asked again. What is not done stays in memory.
    """

    def __init__(self, ready: Callable[[T], Record | None], held: int = HELD, spooled: int = SPOOLED) -> None:
        self._ready = ready
        self._held = held
        self._places: deque[_Place[T]] = deque()
        self._in_memory: list[_Place[T]] = []
        self._weight = 0
        self._spool = _Spool(spooled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()

    def __len__(self) -> int:
        return len(self._places)

    def append(self, work: T, record: Record) -> None:
        """One more at the end; `record` is what the work is about and about as large as what comes of it."""
        place = _Place[T](work, _weight(record))
        self._places.append(place)
        self._in_memory.append(place)
        self._weight += place.weight

    def has_room(self) -> bool:
        """Whether one more may come. Takes to the temporary file what is done and must wait, if need be."""
        if self._weight > self._held and not self._spool.full:
            self._in_memory = [place for place in self._in_memory if place.weight and not self._put_away(place)]
        return self._weight <= self._held

    def _put_away(self, place: _Place[T]) -> bool:
        """Take a record that is there to the temporary file, if that has room."""
        record = self._record(place)
        place.ticket = None if record is None else self._spool.put(record)
        if place.ticket is None:
            return False
        place.record = None
        self._weight -= place.weight
        return True

    def leaving(self) -> Iterator[Record]:
        """The records at the head that are there."""
        while self._places:
            place = self._places[0]
            record = self._record(place) if place.ticket is None else self._spool.take(place.ticket)
            if record is None:
                return
            if place.ticket is None:
                self._weight -= place.weight
                place.weight = 0  # it has left
            self._places.popleft()
            if not self._places:
                self._in_memory.clear()
            yield record

    def _record(self, place: _Place[T]) -> Record | None:
        if place.work is not None:
            place.record = self._ready(place.work)
            if place.record is not None:
                place.work = None
        return place.record


def _weight(record: Record) -> int:
    """About how many bytes of memory a record takes."""
    return 1000 + sum(
        len(value) if isinstance(value, str) else 40 * len(value) if isinstance(value, list) else 0
        for value in record.values()
    )


class _Spool:
    """Records by ticket. The file starts over whenever every ticket has been redeemed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._file: IO[bytes] | None = None
        self._end = 0
        self._out = 0
        self.full = False

    def put(self, record: Record) -> Ticket | None:
        """Write a record and return its ticket; None when the file, or the disk, is full."""
        data = dumps([record.where, record])
        written = 0
        if self._end + len(data) <= self._most:
            with suppress(OSError):
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="rlvr-", buffering=0)  # noqa: SIM115
                written = os.pwrite(self._file.fileno(), data, self._end)
        if written < len(data):
            self.full = True
            return None
        ticket = (self._end, len(data))
        self._end += len(data)
        self._out += 1
        return ticket

    def take(self, ticket: Ticket) -> Record:
        """The record of a ticket, which is spent."""
        assert self._file is not None, "a ticket is of a record that was put"
        offset, length = ticket
        where, columns = loads(os.pread(self._file.fileno(), length, offset))
        self._out -= 1
        if not self._out:
            self._end, self.full = 0, False
            with suppress(OSError):
                self._file.truncate(0)
        return Record(columns, where)

    def close(self) -> None:
        """Give the space back."""
        if self._file is not None:
            self._file.close()
