"""The command table, and the one place where errors become exit codes."""

import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rlvr_cli import __version__
from rlvr_cli.errors import BudgetError, RejectsError, UsageError, UserError

# name -> help, in the order of the loop. Each command is the function of that name in rlvr_cli/commands/.
COMMANDS = {
    "select": "choose the problems that get the next rollouts",
    "rollout": "sample completions for each problem",
    "verify": "judge each completion against the problem's answer",
    "find-pivots": "choose deep, recoverable states in failed rollouts",
    "resample": "sample branches densely from each pivot",
    "bucketize": "count pass rates and sort problems by difficulty",
    "synthesize": "make problems within reach from those without a signal",
    "train-step": "update the policy once from scored rollouts",
    "convert": "read other layouts, merge shards, change the format",
}


class Stages(TyperGroup):
    """The group of all commands. A command is imported when it is used, so that help costs nothing."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # names alone serve for suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command behind a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        function = getattr(import_module(f"rlvr_cli.commands.{name}"), name)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(function)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands for the help, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; every way it can end becomes an exit code here."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise  # typer's own: help was shown, or wrong usage
        except Exception as error:
            raise typer.Exit(_told(error, ctx.invoked_subcommand)) from error


def _told(error: Exception, command: str | None) -> int:
    """Say on standard error what went wrong, and return the exit code."""
    from rlvr_cli.streams.outputs import ClosedPipeError

    if isinstance(error, ClosedPipeError):
        return 0
    if os.environ.get("RLVR_TRACEBACK") == "1":
        traceback.print_exception(error)
    text = str(error)
    if not isinstance(error, UserError | OSError):  # a full disk and the like say what and where themselves
        text = f"unexpected {type(error).__name__}: {error}; RLVR_TRACEBACK=1 shows where"
    print(f"rlvr {command}: {text}", file=sys.stderr)
    codes = {UsageError: 2, RejectsError: 3, BudgetError: 4}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), 1)


app = typer.Typer(cls=Stages, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rlvr {__version__}")
        raise typer.Exit


@app.callback()
def rlvr(
    version: Annotated[
        bool, typer.Option("--version", help="show the version", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Reinforcement learning with verifiable rewards, one command a stage: records in, records out."""


def main() -> None:
    """The program. Ends by SystemExit; 130 when interrupted or asked to terminate."""
    owner = os.getpid()

    def terminate(signal_number: int, frame: FrameType | None) -> None:
        if os.getpid() != owner:  # a forked worker has nothing to tidy
            os._exit(128 + signal_number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    try:
        typer.main.get_command(app).main(prog_name="rlvr")
    finally:
        # what C libraries print at exit is no record either
        with suppress(OSError):
            os.dup2(2, 1)
