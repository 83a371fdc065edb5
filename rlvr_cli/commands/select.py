"""`rlvr select`: options in, streams opened, figures out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run
from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record
from rlvr_cli.stages.select import check_choosable, check_stats
from rlvr_cli.stages.select import select as stage
from rlvr_cli.streams.inputs import read_all


@with_io(resumable=False)
def select(
    io: IO,
    stats: Annotated[
        list[str] | None,
        opt("--stats", help="what rlvr bucketize wrote: file, glob or directory; may be repeated"),
    ] = None,
    step: Annotated[int, opt("--step", help="the training step that the batch is for, from 0")] = 0,
    batch: Annotated[int, opt("--batch", help="how many problems")] = 32,
    method: Annotated[
        Literal["uniform", "frontier"],
        opt("--method", help="frontier: mixed groups first, then the least recently tried; uniform: epoch by epoch"),
    ] = "frontier",
    seed: Annotated[int, opt("--seed", help="the run's seed")] = 0,
) -> None:
    """Choose the batch of step T: the problems that deserve the next rollouts.

    Problems in, the chosen ones out, each with its `select_reason`. The choice depends on the set of problems, not on
    their order.
    """
    if step < 0 or batch < 1:
        raise UsageError(f"--step is {step} and --batch is {batch}, expected --step >= 0 and --batch >= 1")
    with Run("select", io, resumable=False) as run:
        if method == "frontier" and not stats and step:
            run.warn(f"no --stats at step {step}: every problem counts as untried")
        if method == "uniform" and stats:
            run.warn("--method uniform does not look at --stats")
        rows = read_all(stats, check_stats) if stats else ()
        run.total = batch
        problems = run.read(check_choosable)
        reasons: Counter[str] = Counter()
        run.write(_counted(stage(problems, step=step, batch=batch, method=method, seed=seed, stats=rows), reasons))
        chosen = reasons.total()
        run.figures(selected=chosen, reasons=dict(reasons))
        if chosen < batch:
            run.warn(f"--batch is {batch} and there are {chosen} problems: all of them are chosen")
        parts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        run.say(f"{chosen} problems for step {step}" + (f": {parts}" if parts else ""))


def _counted(records: Iterable[Record], reasons: Counter[str]) -> Iterator[Record]:
    """Pass the records on and count the kinds of reason: without the step and the counts."""
    for record in records:
        reasons[record["select_reason"].partition(": ")[2].partition(" at ")[0]] += 1
        yield record
