"""JSON lines in and out. What JSON can say is kept exactly: integers of any size, text of any script."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import orjson

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record

# orjson reads an integer beyond 64 bits as a float. Any of 19 digits or more (no fraction: no dot before it) is read by
# the standard library instead, which keeps it.
_LONG_INTEGER = re.compile(rb"(?<![.\d])\d{19}")
# What has no 19 digits in a row is found out forty times as fast with every digit made the same.
_SAME = bytes(ord("0") if ord("0") <= byte <= ord("9") else 0 for byte in range(256))
_LONG = b"0" * 19


@dataclass(frozen=True)
class BadLine:
    """A line that is no record: where it stands, why it is none, and its text."""

    where: str
    reason: str
    text: str


def loads(text: bytes) -> Any:
    """The value of one JSON text. Raises ValueError for anything else, NaN and invalid UTF-8 included."""
    value = orjson.loads(text)
    if _LONG not in text.translate(_SAME) or not _LONG_INTEGER.search(text):
        return value
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dumps(value: Any) -> bytes:
    """One JSON text in UTF-8, without a line end."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer beyond 64 bits, or nesting beyond orjson's limit
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except RecursionError as error:
            raise RecordError(f"{getattr(value, 'where', 'record')}: nested too deeply to be written") from error


def read(lines: Iterable[bytes], name: str) -> Iterator[Record | BadLine]:
    """A Record or a BadLine for each line that is not blank. Columns that are null are dropped.

    `name` is the file's name as people know it; places are `name:line`, lines from 1.
    """
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # a byte order mark, as Windows editors leave it
        if text := line.strip():
            yield _parse(text, f"{name}:{number}")


def read_json(lines: Iterable[bytes], name: str) -> Iterator[Record | BadLine]:
    """The records of a `.json` file: one object over several lines, a list of them, or JSON lines after all.

    Only JSON lines are streamed. Places are `name:number`, of the object in a list.
    """
    lines = iter(lines)
    first = next(lines, b"")
    if isinstance(_value(first), dict):
        yield from read(chain([first], lines), name)
        return
    text = (first + b"".join(lines)).removeprefix(b"\xef\xbb\xbf")
    try:
        value = loads(text)
    except ValueError as error:
        if text.strip()[:2] in (b"{\n", b"{\r") or text.lstrip().startswith(b"["):
            where = f"{name}:{getattr(error, 'lineno', 1)}"
            yield BadLine(where, _reason(text, error), text.decode(errors="replace"))
        else:
            yield from read(text.splitlines(), name)
        return
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        yield _record(item, f"{name}:{number}")


def _value(text: bytes) -> Any:
    try:
        return loads(text.strip().removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return None


def _parse(line: bytes, where: str) -> Record | BadLine:
    try:
        value = loads(line)
    except ValueError as error:
        return BadLine(where, _reason(line, error), line.decode(errors="replace"))
    return _record(value, where, line)


def _record(value: Any, where: str, text: bytes | None = None) -> Record | BadLine:
    if not isinstance(value, dict):
        shown = dumps(value) if text is None else text
        return BadLine(where, "is JSON but no object; a record is one object a line", shown.decode())
    return Record({key: item for key, item in value.items() if item is not None}, where)


def _reason(line: bytes, error: ValueError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as bad:
        return f"is not valid UTF-8 at byte {bad.start + 1}; save the file as UTF-8"
    # orjson counts lines within the text it was given, which is always one line: only the column says something
    said = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"is not valid JSON ({said}); mend or remove the line"
