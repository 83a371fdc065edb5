"""One run of a command: what is the same for all of them, from opening the streams to the line of metrics."""

import os
import re
import resource
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlvr_cli import __version__
from rlvr_cli.commands.options import IO
from rlvr_cli.commands.progress import progress
from rlvr_cli.errors import BudgetError, RecordError, RejectsError, UsageError, UserError
from rlvr_cli.records import Record, in_shard, problem_id, stable_hash
from rlvr_cli.streams import inputs
from rlvr_cli.streams.inputs import STDIN, Source
from rlvr_cli.streams.jsonl import BadLine, dumps
from rlvr_cli.streams.outputs import ClosedPipeError, FileOutput, Output, StandardOutput, Unit, format_of
from rlvr_cli.streams.rejects import Rejects


class Run:
    """A command's run, as a context manager: streams are opened, messages told, figures kept, all closed in the end.

    `settings` are the options (and the policy's id) that the output depends on: an unfinished run is gone on with only
    if they are the same. `records_out=False` is for a command whose output is no stream of records. `writes` are the
    options that name further files that the command writes, with their values; `reads` those that name side inputs.
    """

    def __init__(
        self,
        command: str,
        io: IO,
        settings: dict[str, Any] | None = None,
        *,
        resumable: bool = True,
        records_out: bool = True,
        writes: dict[str, str | None] | None = None,
        reads: dict[str, list[str] | None] | None = None,
    ) -> None:
        self.command = command
        self.total: int | None = None  # records that will be written, where that is known: the progress bar's end
        self.already = 0  # units that the run gone on with had finished
        self._io = io
        self._settings = settings or {}
        self._resumable = resumable
        self._records_out = records_out
        self._writes = {"--rejects": io.rejects, "--metrics": io.metrics, **(writes or {})}
        self._reads = reads or {}
        self._stack = ExitStack()
        self._figures: dict[str, Any] = {}
        self._read = self._written = 0
        self._stopped: str | None = None
        self._began = time.time()
        self._metrics: int | None = None
        self._rejects = Rejects("stop")
        self._output: Output | None = None

    def __enter__(self) -> Self:
        try:
            self._metrics = _opened_metrics(self._io.metrics)
            self._stdout = self._stack.enter_context(private_stdout())
            self._sources = self._apart(inputs.expand(self._io.inputs))
            self._rejects = Rejects(self._io.on_error, self._io.rejects)
            self._stack.callback(self._rejects.close)
            self._output = self._open_output() if self._records_out else None
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def _apart(self, sources: list[Source]) -> list[Source]:
        """The sources without the output, where a directory or glob brought it in; no other written file may be one.

        A side input may be no written file at all: it would be lost.
        """
        read = {source.path.resolve(): source for source in sources if source.path is not None}
        beside = {
            source.path.resolve(): option
            for option, names in self._reads.items()
            for source in inputs.side(names or [])
            if source.path is not None
        }
        written: dict[Path, str] = {}
        for option, name in {"--output": self._io.output, **self._writes}.items():
            if name is None:
                continue
            place = Path(name).resolve()
            taken = None
            if place in beside:
                taken = f"is read as {beside[place]}"
            elif place in written:
                taken = f"and {written[place]} name the same file"
            elif place in read and option != "--output":
                taken = "is an input"
            written[place] = option
            if taken:
                self._metrics = None  # no line of this failure may go there
                raise UsageError(f"{option} {name} {taken}; name another one")
        found = read.get(Path(self._io.output).resolve()) if self._io.output is not None else None
        if found is None or found.name in self._io.inputs:
            return sources
        self.warn(f"{found.name} is the output: left out of the inputs")
        return [source for source in sources if source != found]

    def _open_output(self) -> Output:
        name = self._io.output
        if name is None:
            output: Output = StandardOutput(os.dup(self._stdout), self._io.format or "jsonl")
            self._stack.callback(output.close)
            return output
        form = format_of(name, self._io.format)
        output = FileOutput(
            name, form, resume=self._io.resume and self._resumable, force=self._io.force or not self._resumable
        )
        self._stack.callback(output.close)
        output.start(self.command, self._digest() if self._resumable else "")
        return output

    def _digest(self) -> str:
        contents = [inputs.digest(source) for source in self._sources]
        return stable_hash(__version__, self.command, self._settings, contents, self._io.shard)

    def read(
        self,
        check: Callable[[Record], None],
        *,
        unit: Unit | None = None,
        before_model: bool = False,
        identify: bool = True,
        translate: Callable[[Record], Record] | None = None,
    ) -> Iterator[Record]:
        """The records of all inputs: parsed, checked, of this shard, with their problem_id, bad ones set aside.

        With a `unit` those that the run gone on with has finished are left out. `before_model` reads all input once
        before this returns, so that a bad record stops the run before anything slow is done, and sets `total` to the
        number of records. `identify=False` adds no problem_id. `check` raises RecordError; it is called again when the
        input is read again. `translate` makes the record of a row in another layout, before the check.
        """
        rejects = self._rejects
        if before_model:
            self._sources = [inputs.spooled(source, self._stack) for source in self._sources]
            self.total = sum(1 for _ in self._valid(check, rejects, identify, translate))
            rejects = Rejects("skip")  # the first pass has told of them
        records = self._counted(self._valid(check, rejects, identify, translate))
        return records if unit is None else self.owed(records, unit)

    def _valid(
        self,
        check: Callable[[Record], None],
        rejects: Rejects,
        identify: bool,
        translate: Callable[[Record], Record] | None,
    ) -> Iterator[Record]:
        shard = self._io.shard
        found = 0
        for item in (item for source in self._sources for item in inputs.read(source)):
            found += 1
            if isinstance(item, BadLine):
                rejects.line(item)
                continue
            try:
                record = item if translate is None else translate(item)
                check(record)
            except RecordError as error:
                rejects.record(item, error)
                continue
            if shard is None or in_shard(problem_id(record), *shard):
                yield _identified(record) if identify else record
        if not found and rejects is self._rejects:
            self.warn(f"no records in {', '.join(map(_shown, self._sources))}")

    def _counted(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            self._read += 1
            yield record

    def owed(self, records: Iterator[Record], unit: Unit) -> Iterator[Record]:
        """The records whose units are still to be made: all but those that the run gone on with has finished.

        For commands that drop records between `read` and the stage; others give `read` the unit.
        """
        assert self._output is not None, "only a command that writes records has units"
        done = self._output.done(unit)
        self.already = self._output.already
        if self.already:
            self.say(f"resumed: {counted(self._output.records_already, 'record')} were there already")
        return self._after(done, records, unit)

    def _after(self, done: Iterator[str], records: Iterator[Record], unit: Unit) -> Iterator[Record]:
        for identity in done:
            record = next(records, None)
            if record is None or unit.identity(record) != identity:
                where = "the end of the input" if record is None else record.where
                raise UserError(
                    f"{self._io.output}: the unfinished work was made from other input than this (at {where}); "
                    "start over with --force"
                )
        yield from records

    def write(self, records: Iterable[Record], unit: Unit | None = None) -> None:
        """Write all that the stage yields, unit by unit, and finish the output."""
        output = self._output
        assert output is not None, "the command said that it writes no records"
        try:
            with progress(self.command, self.total, output.records_already) as advance:
                for lines in _units_of(records, unit):
                    output.write(lines)
                    self._written += len(lines)
                    advance(len(lines))
            output.commit()
        finally:
            if isinstance(records, Generator):
                records.close()  # its engines and workers end now, not when memory is tidied

    def print(self, line: dict[str, Any]) -> None:
        """One JSON line on standard output, for a command whose output is no stream of records."""
        try:
            os.write(self._stdout, dumps(line) + b"\n")
        except BrokenPipeError as error:
            raise ClosedPipeError from error
        except OSError as error:
            self.warn(f"standard output cannot be written: {error.strerror}")  # what was made is made

    def figures(self, **figures: Any) -> None:
        """Figures for --metrics."""
        self._figures.update(figures)

    def stop(self, reason: str) -> None:
        """Say that a budget or deadline ended the work early: the output is finished, the exit code is 4."""
        self._stopped = reason

    def say(self, text: str) -> None:
        """One line to people, on standard error."""
        with suppress(OSError):  # nobody listens
            print(f"rlvr {self.command}: {text}", file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """One line about something that may be wrong."""
        self.say(f"warning: {text}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if error is None:
                self._rejects.commit()
            elif isinstance(error, KeyboardInterrupt):
                self._say_interrupted()
            self._append_metrics(error)
        if error is None:
            self._judge()

    def _say_interrupted(self) -> None:
        kept = isinstance(output := getattr(self, "_output", None), FileOutput) and output.unfinished
        self.say(
            "interrupted" + ("; what is done is kept, --resume goes on from it" if kept and self._resumable else "")
        )

    def _judge(self) -> None:
        count, bound = self._rejects.count, self._io.max_rejects
        where = f"see {self._io.rejects}" if self._io.rejects else "--rejects FILE keeps them, with reasons"
        if bound is not None and count > bound:
            raise RejectsError(f"{counted(count, 'bad record')} set aside, --max-rejects allows {bound}; {where}")
        if count:
            self.say(f"{counted(count, 'bad record')} set aside; {where}")
        if self._stopped is not None:
            raise BudgetError(self._stopped)

    def _append_metrics(self, error: BaseException | None) -> None:
        if self._metrics is None:
            return
        line = {
            "command": self.command,
            "version": __version__,
            "time": datetime.fromtimestamp(self._began, UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - self._began, 3),
            "read": self._read,
            "already": self.already,
            "written": self._written,
            "rejected": self._rejects.count,
            "peak_mib": round(_peak_mib(), 1),
            "ended": "stopped" if self._stopped and error is None else _ended(error),
            **self._figures,
        }
        os.write(self._metrics, dumps(line) + b"\n")


def counted(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


@contextmanager
def private_stdout() -> Iterator[int]:
    """A descriptor of standard output that is the caller's alone: what any library prints goes to standard error."""
    try:
        sys.stdout.flush()
        private = os.dup(1)
    except (AttributeError, OSError) as error:  # Python has no sys.stdout where it was closed by the caller
        raise UserError("standard output is closed or full; redirect it to a file or /dev/null") from error
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):  # in order with what is printed to standard error itself
            yield private
    finally:
        sys.stdout.flush()  # what kept the old object, a log handler say, ends there too
        os.dup2(private, 1)
        os.close(private)


def _units_of(records: Iterable[Record], unit: Unit | None) -> Iterator[list[bytes]]:
    """The lines of each unit together; of each record alone without one."""
    lines: list[bytes] = []
    identity, left = "", 0
    for record in records:
        if unit is not None:
            found = unit.identity(record)
            if not lines:
                identity, left = found, unit.size(record)
            assert found == identity, f"the stage left unit {identity} for {found} with {left} records owed"
        lines.append(dumps(record) + b"\n")
        left -= 1
        if left <= 0:
            yield lines
            lines = []
    assert not lines, f"the stage ended within unit {identity} with {left} records owed"


def _identified(record: Record) -> Record:
    if "problem_id" in record or not ("prompt" in record or "messages" in record):
        return record
    return Record({"problem_id": problem_id(record), **record}, record.where)


def _shown(source: Source) -> str:
    return "standard input" if source.name == STDIN else source.name


def _opened_metrics(path: str | None) -> int | None:
    if path is None:
        return None
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UserError(f"--metrics {path}: cannot be written ({error.strerror}); check the directory") from error


def _peak_mib() -> float:
    """The most memory that this process has held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux: there getrusage counts what the parent held at the fork
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if found:
            return int(found[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _ended(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    if isinstance(error, ClosedPipeError):
        return "closed pipe"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
