"""`rlvr convert`: options in, streams opened, figures out."""

from typing import Annotated

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, counted
from rlvr_cli.records import check_columns
from rlvr_cli.stages.convert import Tally, content_hash
from rlvr_cli.stages.convert import convert as stage
from rlvr_cli.streams.outputs import Unit

UNIT = Unit(identity=content_hash, size=lambda record: 1)


@with_io()
def convert(
    io: IO,
    drop_duplicates: Annotated[
        bool, opt("--drop-duplicates", help="keep the first record of each problem_id, of rollouts each rollout_id")
    ] = False,
) -> None:
    """Turn records from JSONL into Parquet and back, merge shards, drop duplicates."""
    with Run("convert", io, settings={"drop_duplicates": drop_duplicates}) as run:
        tally = Tally()
        unique = stage(run.read(check_columns, identify=False), tally, drop_duplicates=drop_duplicates)
        run.write(run.owed(unique, UNIT), unit=UNIT)
        run.figures(duplicates=tally.duplicates)
        fate = "dropped" if drop_duplicates else "kept"
        duplicates = f"; {counted(tally.duplicates, 'duplicate')} {fate}" if tally.duplicates else ""
        run.say(counted(tally.records, "record") + duplicates)
