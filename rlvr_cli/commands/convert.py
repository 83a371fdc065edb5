"""`rlvr convert`: options in, streams opened, figures out."""

from collections.abc import Callable
from typing import Annotated, Literal

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, counted
from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.stages.convert import Tally, content_hash
from rlvr_cli.stages.convert import convert as stage
from rlvr_cli.streams.outputs import Unit

UNIT = Unit(identity=content_hash, size=lambda record: 1)


@with_io()
def convert(
    io: IO,
    layout: Annotated[
        Literal["gsm8k", "math", "verl", "trl"] | None,
        opt("--from", help="read rows of this layout: GSM8K or MATH as published, verl's or TRL's prompts", env=False),
    ] = None,
    verifier: Annotated[
        str | None, opt("--verifier", help="with --from: what all problems are to be judged by", env=False)
    ] = None,
    source: Annotated[str | None, opt("--source", help="with --from: the data set's name", env=False)] = None,
    instruction: Annotated[
        str | None, opt("--instruction", help="with --from gsm8k or math: add this text to each question", env=False)
    ] = None,
    drop_duplicates: Annotated[
        bool, opt("--drop-duplicates", help="keep the first record of each problem_id, of rollouts each rollout_id")
    ] = False,
) -> None:
    """Turn records from JSONL into Parquet and back, merge shards, drop duplicates; read other projects' problems.

    A file ending in .json holds one object, a list of them, or JSON lines:
    rlvr convert --from math 'MATH/train/**/*.json'.
    """
    asked = {"verifier": verifier, "source": source, "instruction": instruction}
    translate = _translation(layout, asked)
    with Run("convert", io, settings={"from": layout, **asked, "drop_duplicates": drop_duplicates}) as run:
        tally = Tally()
        records = run.read(check_columns, identify=layout is not None, translate=translate)
        run.write(run.owed(stage(records, tally, drop_duplicates=drop_duplicates), UNIT), unit=UNIT)
        run.figures(duplicates=tally.duplicates)
        fate = "dropped" if drop_duplicates else "kept"
        duplicates = f"; {counted(tally.duplicates, 'duplicate')} {fate}" if tally.duplicates else ""
        if layout is None:
            run.say(counted(tally.records, "record") + duplicates)
            return
        run.figures(verifiers=dict(tally.verifiers))
        judges = ", ".join(f"{count} for {name}" for name, count in tally.verifiers.most_common())
        run.say(f"{counted(tally.records, 'problem')} from {layout}" + (f": {judges}" if judges else "") + duplicates)


def _translation(layout: str | None, asked: dict[str, str | None]) -> Callable[[Record], Record] | None:
    """What makes a problem of a row, None where rows are records already. Raises UsageError."""
    if layout is None:
        given = next((name for name, value in asked.items() if value is not None), None)
        if given is not None:
            raise UsageError(f"--{given} needs --from; without it records keep what they have")
        return None
    from rlvr_cli.layouts import BARE, to_problem
    from rlvr_cli.verifiers import known

    if asked["instruction"] is not None and layout not in BARE:
        raise UsageError(f"--instruction needs --from {' or '.join(BARE)}; {layout}'s prompts have theirs")
    verifier = asked["verifier"]
    if verifier is not None and ":" in verifier:
        raise UsageError(f"--verifier {verifier}: records cannot name your own code; give it to rlvr verify")
    if verifier is not None:
        known(verifier)
    return lambda row: to_problem(row, layout, **asked)
