import inspect
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.errors import UsageError

seen: list[tuple[IO, int]] = []


@with_io()
def example(io: IO, samples: Annotated[int, opt("--samples", "-n", help="completions a problem")] = 8) -> None:
    """A command with one option of its own."""
    seen.append((io, samples))


def call(*arguments: str, env: dict[str, str] | None = None) -> tuple[IO, int]:
    app = typer.Typer(add_completion=False)
    app.command()(example)
    seen.clear()
    CliRunner().invoke(app, arguments, env=env or {}, catch_exceptions=False)
    return seen[0]


def test_shared_options_come_packed_beside_the_commands_own() -> None:
    assert call("a.jsonl", "b.jsonl", "-n", "4", "-o", "out.parquet", "--resume", "--shard", "1/3") == (
        IO(["a.jsonl", "b.jsonl"], output="out.parquet", resume=True, shard=(1, 3)),
        4,
    )
    assert call() == (IO([]), 8)
    assert call("-o", "-") == (IO([]), 8)  # the usual name of standard output


def test_the_environment_gives_options_and_the_command_line_wins() -> None:
    env = {"RLVR_SAMPLES": "32", "RLVR_SHARD": "0/2"}
    assert call(env=env) == (IO([], shard=(0, 2)), 32)
    assert call("--samples", "2", "--shard", "1/2", env=env) == (IO([], shard=(1, 2)), 2)


def test_what_names_the_files_of_one_call_never_comes_from_the_environment() -> None:
    env = {"RLVR_OUTPUT": "o.jsonl", "RLVR_REJECTS": "r.jsonl", "RLVR_RESUME": "1", "RLVR_FORCE": "1"}
    assert call(env=env) == (IO([]), 8)


def test_a_command_that_cannot_resume_has_no_such_options() -> None:
    def plain(io: IO) -> None: ...

    assert {"resume", "force"} <= inspect.signature(with_io()(plain)).parameters.keys()
    assert {"resume", "force"} & inspect.signature(with_io(resumable=False)(plain)).parameters.keys() == {"resume"}
    assert "format" not in inspect.signature(with_io(records_out=False)(plain)).parameters


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard", "2/2"], "--shard is 2/2, expected I/N with I from 0 to N - 1"),
        (["--shard", "1"], "--shard is 1, expected I/N"),
        (["--shard", "-1/2"], "--shard is -1/2, expected I/N"),
        (["--rejects", "r.jsonl"], "--rejects needs --on-error skip"),
        (["--max-rejects", "3"], "--max-rejects needs --on-error skip"),
        (["--on-error", "skip", "--max-rejects", "-1"], "--max-rejects is -1, expected 0 or more"),
        (["--resume"], "need a named output"),
        (["-o", "x.jsonl", "--resume", "--force"], "give one of them"),
    ],
)
def test_options_that_do_not_fit_together_are_wrong_usage(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(*arguments)


def test_an_option_of_the_command_is_passed_by_name() -> None:
    own: dict[str, Any] = dict(inspect.signature(example).parameters)
    assert own["samples"].default == 8
    assert "io" not in own
