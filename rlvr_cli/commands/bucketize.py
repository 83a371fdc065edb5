"""`rlvr bucketize`: options in, streams opened, figures out."""

from collections import Counter
from typing import Annotated

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run
from rlvr_cli.difficulty.summary import summary, table
from rlvr_cli.stages.bucketize import COUNTED, check_scored
from rlvr_cli.stages.bucketize import bucketize as stage
from rlvr_cli.streams.inputs import read_all


@with_io(resumable=False)
def bucketize(
    io: IO,
    base: Annotated[
        list[str] | None,
        opt(
            "--base",
            help="scored rollouts of the policy that sets the buckets: file, glob or directory; may be repeated",
        ),
    ] = None,
) -> None:
    """Pass rates, difficulty buckets and what the problems are worth to each policy.

    Scored rollouts in, one row of statistics out for each problem, policy and sampling; a table on standard error.
    Never solved by the base policy is `hard`, the rest is halved into `medium` and `easy`. Without --base that policy
    is the one of the earliest step in the input.
    """
    with Run("bucketize", io, resumable=False, reads={"--base": base}) as run:
        counts: Counter[str] = Counter()
        known = read_all(base, check_scored) if base else None
        rows = list(stage(run.read(check_scored), known, counts))
        run.write(rows)
        figures = summary(rows)
        run.figures(rows=len(rows), **{name: counts[name] for name in COUNTED}, policies=figures)
        _tell(run, counts, with_base=known is not None)
        run.say(f"{counts['rollouts']} rollouts, {len(rows)} rows" + (f"\n\n{table(figures)}" if figures else ""))


def _tell(run: Run, counts: Counter[str], with_base: bool) -> None:
    """What was left out, and what looks wrong."""
    if counts["branches"]:
        run.say(f"{counts['branches']} branch rollouts left out: pass rates are of main rollouts")
    if counts["unjudged"]:
        run.warn(f"{counts['unjudged']} rollouts could not be judged and are in no rate; see their verifier_detail")
    if counts["duplicates"]:
        run.warn(f"{counts['duplicates']} rollouts were there more than once and count once; is a file named twice?")
    if counts["groups_unfinished"]:
        run.warn(f"{counts['groups_unfinished']} groups are smaller than their group_size; is the input whole?")
    if counts["rows_unknown"] and with_base:
        run.warn(f"{counts['rows_unknown']} rows have the bucket unknown: --base has no judged rollout of the problem")
