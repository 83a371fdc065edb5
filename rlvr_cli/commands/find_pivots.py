"""`rlvr find-pivots`: options in, streams opened, figures out."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run
from rlvr_cli.errors import UsageError
from rlvr_cli.exploration.pivots import Worth
from rlvr_cli.exploration.recoverability import ENOUGH, Logistic, Observation, check_branch, fit, observations
from rlvr_cli.exploration.segments import PATTERNS, Segments, decoder, parse
from rlvr_cli.policy import locate
from rlvr_cli.records import Record
from rlvr_cli.stages.find_pivots import COUNTED, Checker, Plan
from rlvr_cli.stages.find_pivots import find_pivots as stage
from rlvr_cli.streams.inputs import read_all

BINS = 5  # of the pivots by depth


@with_io(resumable=False)
def find_pivots(
    io: IO,
    history: Annotated[
        list[str] | None,
        opt("--history", help="past scored branches: file, glob or directory; may be repeated; without any P = 1"),
    ] = None,
    segments: Annotated[
        str, opt("--segments", help="where completions are cut: tokens:N (each), sentences, lines, parts:N (of them)")
    ] = "tokens:50",
    model: Annotated[
        str,
        opt("--model", help="policy whose tokenizer sentences and lines are read with: `tiny` or a local directory"),
    ] = "tiny",
    method: Annotated[
        Literal["utility", "random", "depth", "recoverability"] | None,
        opt(
            "--method",
            help="what a state is drawn by: utility is P(success | depth) * depth^gamma (the default), depth and "
            "recoverability are its factors, random takes all alike",
            env=False,
        ),
    ] = None,
    gamma: Annotated[
        float | None, opt("--gamma", help="weight of depth in the methods utility and depth [default: 2]", env=False)
    ] = None,
    score_column: Annotated[
        str | None,
        opt(
            "--score-column",
            help="draw by the scores in this column (of a process reward model) instead of --method: a list, one "
            "for each segment or each token, of the state after it",
            env=False,
        ),
    ] = None,
    pivots_per_rollout: Annotated[
        int, opt("--pivots-per-rollout", help="states drawn from a failed rollout, no state twice")
    ] = 1,
    per_group: Annotated[
        int, opt("--per-group", help="failed rollouts of a group that get pivots, at most; 0: all")
    ] = 0,
    threshold: Annotated[float, opt("--threshold", help="a rollout fails when its reward is not above this")] = 0.0,
    seed: Annotated[int, opt("--seed", help="the run's seed; each rollout's own is derived from it")] = 0,
) -> None:
    """Choose deep, recoverable states in failed rollouts, to resample from (Deep Dense Exploration).

    Scored rollouts in, one record for each pivot out: the failed rollout with pivot_id, prefix_len, depth,
    recoverability and utility. --history says at which depths past pivots led to a success.
    """
    worth = _worth(method, gamma, score_column)
    for flag, value, least in (("--pivots-per-rollout", pivots_per_rollout, 1), ("--per-group", per_group, 0)):
        if value < least:
            raise UsageError(f"{flag} is {value}, expected {least} or more")
    if not math.isfinite(threshold):
        raise UsageError(f"--threshold is {threshold}, expected a number")
    kind, size = parse(segments)
    with Run("find-pivots", io, resumable=False, reads={"--history": history}) as run:
        decode = decoder(locate(model)) if kind in PATTERNS else None
        seen = observations(read_all(history, check_branch), threshold) if history else []
        chance = fit(seen)
        plan = Plan(
            segments=Segments(kind, size, decode),
            worth=Worth(**worth, chance=chance),
            threshold=threshold,
            pivots_per_rollout=pivots_per_rollout,
            per_group=per_group,
            seed=seed,
        )
        counts: Counter[str] = Counter()
        depths = Depths()
        run.write(depths.count(stage(run.read(Checker(plan).check), plan, counts)))
        _report(run, counts, depths, seen, chance)


def _worth(method: str | None, gamma: float | None, score_column: str | None) -> dict[str, Any]:
    """The settings of Worth that were asked for. Raises UsageError for those that do not go together."""
    if score_column is not None and method is not None:
        raise UsageError("--score-column takes the place of --method; give one of them")
    chosen = method or "utility"
    if gamma is not None and (score_column is not None or chosen not in ("utility", "depth")):
        raise UsageError("--gamma weighs depth in --method utility and depth; leave it out here")
    gamma = 2.0 if gamma is None else gamma
    if not 0 <= gamma < math.inf:
        raise UsageError(f"--gamma is {gamma}, expected a number from 0 on")
    return {"method": chosen, "gamma": gamma, "score_column": score_column}


@dataclass
class Depths:
    """The depths of the pivots that went by: how many in each fifth of (0, 1), and their sum."""

    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    total: float = 0.0

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the records on and count them."""
        for record in records:
            self.bins[int(record["depth"] * BINS)] += 1  # no depth is 1: the last state is no candidate
            self.total += record["depth"]
            yield record


def _report(run: Run, counts: Counter[str], depths: Depths, seen: list[Observation], chance: Logistic | None) -> None:
    """The figures for `--metrics`, what was left out, and the closing summary."""
    successes = sum(success for _, success in seen)
    mean = depths.total / counts["pivots"] if counts["pivots"] else None
    run.figures(
        **{name: counts[name] for name in COUNTED},
        pivots_by_depth=depths.bins,
        depth_mean=mean,
        slope=chance and chance.slope,
        intercept=chance and chance.intercept,
        observations=len(seen),
        observations_success=successes,
    )
    if counts["branches"]:
        run.say(f"{counts['branches']} branch rollouts left out: pivots are of main rollouts")
    if counts["unjudged"]:
        run.warn(
            f"{counts['unjudged']} rollouts could not be judged and count as no failure; see their verifier_detail"
        )
    if counts["groups_unfinished"]:
        run.warn(f"{counts['groups_unfinished']} groups are smaller than their group_size; is the input whole?")
    if counts["groups_oversized"]:
        run.warn(
            f"{counts['groups_oversized']} groups are larger than their group_size; were they sampled twice, with "
            "different --samples? --per-group gives pivots to the first group_size rollouts only"
        )
    without = counts["failures_without_candidate"]
    run.say(
        f"{counts['rollouts']} rollouts, {counts['failures']} failures, {counts['candidates']} candidates, "
        f"{counts['pivots']} pivots" + (f"; {without} failures without a candidate" if without else "")
    )
    if mean is not None:
        run.say(f"pivots by depth, in fifths from the root on: {', '.join(map(str, depths.bins))}; mean {mean:.2f}")
    said = f"{len(seen)} observations, {successes} of them a success"
    if chance is None:
        run.say(f"recoverability: P = 1 until more than {ENOUGH} observations hold both outcomes ({said})")
    else:
        run.say(f"recoverability: slope {chance.slope:.3f}, intercept {chance.intercept:.3f} from {said}")
