"""Bad records: stop at the first, or set each aside with its reason and go on."""

from typing import Any

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.streams.jsonl import BadLine, dumps
from rlvr_cli.streams.outputs import FileOutput, format_of

LONGEST_TEXT = 1000  # characters kept of a line that could not be parsed


class Rejects:
    """What becomes of bad records.

    `stop` raises RecordError at the first; `skip` counts them and writes each to the file at `path`, if there is one,
    as `{"where", "reason", "record"}`, or with `text` in place of `record` for a line that could not be parsed. The
    file is made afresh, whole or not at all.
    """

    def __init__(self, mode: str, path: str | None = None) -> None:
        self.count = 0
        self._stops = mode == "stop"
        self._output = None if path is None else FileOutput(path, format_of(path), force=True)
        if self._output is not None:
            self._output.start("rejects", "")

    def line(self, bad: BadLine) -> None:
        """A line that is no record."""
        if self._stops:
            raise RecordError(f"{bad.where}: {bad.reason}")
        self._set_aside({"where": bad.where, "reason": bad.reason, "text": bad.text[:LONGEST_TEXT]})

    def record(self, record: Record, error: RecordError) -> None:
        """A record that a check refused."""
        if self._stops:
            raise error
        reason = str(error).removeprefix(f"{record.where}: ")
        self._set_aside({"where": record.where, "reason": reason, "record": record})

    def _set_aside(self, entry: dict[str, Any]) -> None:
        self.count += 1
        if self._output is not None:
            self._output.write([dumps(entry) + b"\n"])

    def commit(self) -> None:
        """The run is over: put the file in its place."""
        if self._output is not None:
            self._output.commit()

    def close(self) -> None:
        """Let go of the file; what was not committed is dropped, since the next run finds the same again."""
        if self._output is not None:
            self._output.unfinished = False
            self._output.close()
