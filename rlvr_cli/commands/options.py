"""The options that every command has, and how a command's own are declared."""

import functools
import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, get_args, get_origin

import typer

from rlvr_cli.errors import UsageError

P = ParamSpec("P")


# Options that mean the same to every command that has them: one variable, RLVR_<FLAG>, sets them for all.
SHARED = frozenset({"MODEL", "SEED", "DEVICE", "BATCH_SIZE", "SHARD", "ON_ERROR", "METRICS"})


def opt(*flags: str, help: str, env: bool = True) -> Any:
    """A command-line option, for Annotated. Its value can come from the environment too; `with_io` names the variable.

    Not so with `env=False`: for what names or discards the files of one call, and for options that exclude or need
    others. Those could not be overruled by typing another one: the command line is to win.
    """
    long = next(flag for flag in flags if flag.startswith("--"))
    return typer.Option(*flags, help=help, envvar=long.removeprefix("--").replace("-", "_").upper() if env else None)


@dataclass(frozen=True)
class IO:
    """Where a command reads and writes, as the user said it."""

    inputs: list[str]
    output: str | None = None  # None is standard output
    format: str | None = None
    resume: bool = False
    force: bool = False
    shard: tuple[int, int] | None = None  # part I (from 0) of N
    on_error: str = "stop"
    rejects: str | None = None
    max_rejects: int | None = None
    metrics: str | None = None


INPUTS = Annotated[
    list[str] | None,
    typer.Argument(
        help="files, globs, directories of shards, - for standard input, tiny:NAME for embedded problems",
        metavar="INPUT",
    ),
]


def _resume(help: str) -> tuple[Any, Any]:
    return Annotated[bool, opt("--resume", help=help, env=False)], False


OPTIONS: dict[str, tuple[Any, Any]] = {
    "output": (
        Annotated[
            str | None,
            opt("-o", "--output", help="write here, whole or not at all, instead of to standard output", env=False),
        ],
        None,
    ),
    "format": (
        Annotated[
            Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"] | None,
            opt("--format", help="format of the output, whatever its ending", env=False),
        ],
        None,
    ),
    "resume": _resume("go on from an unfinished run with the same output"),
    "force": (Annotated[bool, opt("--force", help="discard an unfinished run with the same output", env=False)], False),
    "shard": (
        Annotated[str | None, opt("--shard", help="take part I (from 0) of N, by problem: I/N")],
        None,
    ),
    "on_error": (
        Annotated[Literal["stop", "skip"], opt("--on-error", help="stop at a bad record, or set it aside")],
        "stop",
    ),
    "rejects": (
        Annotated[str | None, opt("--rejects", help="file for the records set aside, with reasons", env=False)],
        None,
    ),
    "max_rejects": (
        Annotated[
            int | None,
            opt("--max-rejects", help="exit code 3 when more than this many are set aside", env=False),
        ],
        None,
    ),
    "metrics": (Annotated[str | None, opt("--metrics", help="append one JSON line of figures to this file")], None),
}


def with_io(
    resumable: bool = True, records_out: bool = True
) -> Callable[[Callable[Concatenate[IO, P], None]], Callable[..., None]]:
    """Give a command, whose first parameter is `io: IO`, the shared argument and options.

    Typer sees them beside the command's own; the command gets them packed. A command that is not `resumable` keeps
    nothing of an unfinished run, so there is nothing to --force; --resume is taken all the same, so that a script can
    give it to every stage. A command whose output is no stream of records has no --format.

    The environment variable of an option is RLVR_<FLAG> where it is SHARED, else RLVR_<COMMAND>_<FLAG>. An option that
    may be repeated has none: its value would be split at white space.
    """
    without = ("force",) * (not resumable) + ("format",) * (not records_out)
    shared = {name: option for name, option in OPTIONS.items() if name not in without}
    if not records_out:
        shared["resume"] = _resume("leave an output that the same policy, records and settings have made")
    elif not resumable:
        shared["resume"] = _resume("start over after an unfinished run: nothing of one is kept here")

    def decorate(command: Callable[Concatenate[IO, P], None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        @functools.wraps(command)
        def packed(**values: Any) -> None:
            for name, value in values.items():
                if isinstance(value, int) and abs(value) >= 2**63:
                    raise UsageError(f"--{name.replace('_', '-')} is {value}, expected a number of at most 64 bits")
            given = {field.name: values.pop(field.name) for field in fields(IO) if field.name in values}
            command(_io(given), **values)  # type: ignore[call-arg]

        parameters = [_parameter("inputs", INPUTS, None)]
        parameters += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        parameters += [_parameter(name, kind, default) for name, (kind, default) in shared.items()]
        parameters = [_with_variable(parameter, command.__name__) for parameter in parameters]
        packed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        packed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return packed

    return decorate


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _with_variable(parameter: inspect.Parameter, command: str) -> inspect.Parameter:
    """The parameter with its environment variable by its full name, or without one if it may be repeated."""
    kind, option = get_args(parameter.annotation)
    flag = option.envvar
    if flag is None:
        return parameter
    repeatable = any(get_origin(part) is list for part in (kind, *get_args(kind)))
    named = copy(option)  # commands share it
    named.envvar = None if repeatable else f"RLVR_{flag}" if flag in SHARED else f"RLVR_{command.upper()}_{flag}"
    return parameter.replace(annotation=Annotated[kind, named])


def _io(given: dict[str, Any]) -> IO:
    """The shared options, checked against one another. Raises UsageError."""
    output = None if given["output"] == "-" else given["output"]
    io = IO(**{**given, "inputs": given["inputs"] or [], "output": output, "shard": parse_shard(given["shard"])})
    if io.resume and io.force:
        raise UsageError("--resume goes on from an unfinished run, --force discards it; give one of them")
    if output is None and (io.resume or io.force):
        raise UsageError("--resume and --force need a named output; add -o FILE")
    if io.on_error == "stop" and io.rejects is not None:
        raise UsageError("--rejects needs --on-error skip")
    if io.on_error == "stop" and io.max_rejects is not None:
        raise UsageError("--max-rejects needs --on-error skip")
    if io.max_rejects is not None and io.max_rejects < 0:
        raise UsageError(f"--max-rejects is {io.max_rejects}, expected 0 or more")
    return io


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """`I/N` as numbers. Raises UsageError unless 0 <= I < N."""
    if text is None:
        return None
    index, slash, count = text.partition("/")
    if not (slash and _count(index) and _count(count) and int(index) < int(count)):
        raise UsageError(f"--shard is {text}, expected I/N with I from 0 to N - 1, such as 0/4")
    return int(index), int(count)


def _count(text: str) -> bool:
    return text.isdecimal() and len(text) < 19  # Python refuses to read very long numbers
