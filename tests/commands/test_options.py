import inspect
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from rlvr_cli.cli import COMMANDS, app
from rlvr_cli.commands.options import IO, SHARED, opt, with_io
from rlvr_cli.errors import UsageError

seen: list[tuple[IO, int]] = []


@with_io()
def example(io: IO, samples: Annotated[int, opt("--samples", "-n", help="completions a problem")] = 8) -> None:
    """A command with one option of its own."""
    seen.append((io, samples))


def call(*arguments: str, env: dict[str, str] | None = None) -> tuple[IO, int]:
    alone = typer.Typer(add_completion=False)
    alone.command()(example)
    seen.clear()
    CliRunner().invoke(alone, arguments, env=env or {}, catch_exceptions=False)
    return seen[0]


def test_shared_options_come_packed_beside_the_commands_own() -> None:
    assert call("a.jsonl", "b.jsonl", "-n", "4", "-o", "out.parquet", "--resume", "--shard", "1/3") == (
        IO(["a.jsonl", "b.jsonl"], output="out.parquet", resume=True, shard=(1, 3)),
        4,
    )
    assert call() == (IO([]), 8)
    assert call("-o", "-") == (IO([]), 8)  # the usual name of standard output


def test_the_environment_gives_options_and_the_command_line_wins() -> None:
    env = {"RLVR_EXAMPLE_SAMPLES": "32", "RLVR_SHARD": "0/2"}
    assert call(env=env) == (IO([], shard=(0, 2)), 32)
    assert call("--samples", "2", "--shard", "1/2", env=env) == (IO([], shard=(1, 2)), 2)
    # an option's own variable says whose it is, a shared one does not
    assert call(env={"RLVR_SAMPLES": "32", "RLVR_EXAMPLE_SHARD": "0/2"}) == (IO([]), 8)


@pytest.fixture(scope="module")
def options() -> dict[str, dict[str, Any]]:
    """Of each command of the program: its options by name."""
    program: Any = typer.main.get_command(app)
    return {name: {it.name: it for it in program.get_command(None, name).params} for name in COMMANDS}


@pytest.fixture(scope="module")
def variables(options: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each environment variable: the options that read it, by command."""
    found: dict[str, dict[str, Any]] = {}
    for command, own in options.items():
        for option in own.values():
            if option.envvar is not None:
                found.setdefault(option.envvar, {})[command] = option
    return found


def test_a_variable_is_one_commands_own_unless_it_means_the_same_to_all(variables: dict[str, dict[str, Any]]) -> None:
    assert set(variables) >= {f"RLVR_{flag}" for flag in SHARED}
    for variable, readers in variables.items():
        if variable.removeprefix("RLVR_") in SHARED:
            assert len({str(it.type_descriptor.annotation) for it in readers.values()}) == 1, variable
        else:
            (command,) = readers
            assert variable.startswith(f"RLVR_{command.replace('-', '_').upper()}_")
    assert len(variables["RLVR_MODEL"]) > 1
    assert {"RLVR_ROLLOUT_SAMPLES", "RLVR_RESAMPLE_SAMPLES", "RLVR_TRAIN_STEP_DTYPE"} <= set(variables)


def test_repeatable_options_have_no_variable(options: dict[str, dict[str, Any]]) -> None:
    """Its value would be split at white space: a file or a stop text may have some."""
    repeatable = [it for own in options.values() for it in own.values() if it.multiple]
    assert {"stop", "history", "base"} <= {it.name for it in repeatable}
    assert {it.envvar for it in repeatable} == {None}


# option -> those that it excludes or needs
ENTANGLED = {
    "select": ("half_life", "unsolved_cap", "rest", "mastery"),
    "find-pivots": ("method", "gamma", "score_column"),
    "train-step": ("alpha", "branch_weight", "epsilon", "kl_coef", "reference", "max_rejects"),
}


@pytest.mark.parametrize(("command", "names"), ENTANGLED.items(), ids=ENTANGLED)
def test_options_that_exclude_or_need_others_have_no_variable(
    options: dict[str, dict[str, Any]], command: str, names: tuple[str, ...]
) -> None:
    """A value from the environment would turn away what is typed: the command line would not win."""
    assert {name: options[command][name].envvar for name in names} == dict.fromkeys(names)


def test_the_variable_of_a_real_command(tmp_path: Path) -> None:
    def chosen(env: dict[str, str]) -> int:
        done = CliRunner().invoke(app, ["select", "tiny:eval", "-o", str(tmp_path / "batch.jsonl")], env=env)
        assert done.exit_code == 0, done.stderr
        return (tmp_path / "batch.jsonl").read_text().count("\n")

    assert chosen({"RLVR_SELECT_BATCH": "3"}) == 3
    assert chosen({"RLVR_BATCH": "3", "RLVR_ROLLOUT_BATCH": "3"}) == 32


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
