"""`rlvr select`: options in, streams opened, figures out."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, counted
from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record
from rlvr_cli.selection.history import OUTCOMES, check_stats
from rlvr_cli.selection.methods import DEFAULT, Tuning
from rlvr_cli.selection.mix import Shares, names_an_operator, parse_mix
from rlvr_cli.stages.select import Pool, check_choosable
from rlvr_cli.stages.select import select as stage
from rlvr_cli.streams.inputs import read_all
from rlvr_cli.synthesis.chains import OPERATORS

INFORMED = ("frontier", "thompson", "never-give-up")  # the methods that look at statistics


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
        Literal["uniform", "frontier", "thompson", "never-give-up"],
        opt(
            "--method",
            help="frontier: mixed groups first, then the least recently tried; thompson: by a success chance drawn "
            "from each posterior; never-give-up: unsolved first, up to a cap; uniform: epoch by epoch",
        ),
    ] = "frontier",
    mix: Annotated[
        str | None,
        opt(
            "--mix",
            help="shares of the batch, such as problems=0.2,children=0.3,frontier=0.5; a problem is in the first class "
            "that fits and is named: frontier (in the band: not all wrong and not all right at the last try), an "
            "operator's name, generation-N, "
            "children (generation 1 and up), problems",
        ),
    ] = None,
    half_life: Annotated[
        float | None,
        opt(
            "--half-life",
            help=f"thompson: steps after which a count weighs half (default {DEFAULT.half_life:g})",
            env=False,
        ),
    ] = None,
    unsolved_cap: Annotated[
        float | None,
        opt(
            "--unsolved-cap",
            help=f"never-give-up: largest share of unsolved problems in the batch (default {DEFAULT.unsolved_cap:g})",
            env=False,
        ),
    ] = None,
    rest: Annotated[
        int | None,
        opt(
            "--rest",
            help=f"never-give-up: steps that a problem solved every time rests (default {DEFAULT.rest})",
            env=False,
        ),
    ] = None,
    mastery: Annotated[
        float | None,
        opt(
            "--mastery",
            help="all but uniform: an all-wrong problem is tried again when its measured children have this pass rate "
            f"(default {DEFAULT.mastery:g})",
            env=False,
        ),
    ] = None,
    seed: Annotated[int, opt("--seed", help="the run's seed")] = 0,
) -> None:
    """Choose the batch of step T: the problems that deserve the next rollouts.

    Problems in, the chosen ones out, each with its `select_reason`. The choice depends on the set of problems, not on
    their order. --mix frontier=1 with a large --batch keeps those that were measured in the band.
    """
    if step < 0 or batch < 1:
        raise UsageError(f"--step is {step} and --batch is {batch}, expected --step >= 0 and --batch >= 1")
    tuning = _tuning(method, half_life, unsolved_cap, rest, mastery)
    shares = parse_mix(mix) if mix is not None else None
    informed = method in INFORMED or (shares is not None and "frontier" in shares)
    with Run("select", io, resumable=False, reads={"--stats": stats}) as run:
        if informed and not stats and step:
            run.warn(f"no --stats at step {step}: every problem counts as untried")
        if stats and not informed:
            run.warn("--method uniform does not look at --stats")
        tally = Tally(method)
        rows = tally.rows(read_all(stats, check_stats)) if stats and informed else ()
        problems = tally.problems(run.read(check_choosable))
        run.total = batch
        chosen = stage(
            problems,
            step=step,
            batch=batch,
            method=method,
            seed=seed,
            stats=rows,
            mix=shares,
            tuning=tuning,
            pool=tally.pool,
        )
        run.write(tally.chosen(chosen))
        if method in ("thompson", "never-give-up") and tally.newest > step:
            run.warn(f"--stats go up to step {tally.newest} and --step is {step}: is --step right?")
        _tell(run, tally, step, batch, shares, tuning)


@dataclass
class Tally:
    """What the closing summary tells of the records that went by."""

    method: str
    newest: int = -1  # the largest policy_step of the statistics
    pool: Pool = field(default_factory=Pool)
    read: int = 0
    operators: set[str] = field(default_factory=set)
    reasons: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)

    def rows(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the statistics on and note how new they are."""
        for record in records:
            self.newest = max(self.newest, record.get("policy_step", -1))
            yield record

    def problems(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the problems on, count them, and note the operators that made them."""
        for record in records:
            self.read += 1
            if "operator" in record:
                self.operators.add(record["operator"])
            yield record

    def chosen(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the chosen on and count their classes, and the kinds of reason: without steps, counts and draws."""
        for record in records:
            label, _, why = record["select_reason"].partition(f"{self.method}: ")
            self.classes[label.removesuffix("/")] += 1
            self.reasons[re.split(r" at | \(|; drew ", why, maxsplit=1)[0]] += 1
            yield record


def _tuning(
    method: str, half_life: float | None, unsolved_cap: float | None, rest: int | None, mastery: float | None
) -> Tuning:
    """The numbers as given, with the defaults of the others. Raises UsageError for one that the method ignores."""
    for flag, value, methods in (
        ("--half-life", half_life, ("thompson",)),
        ("--unsolved-cap", unsolved_cap, ("never-give-up",)),
        ("--rest", rest, ("never-give-up",)),
        ("--mastery", mastery, INFORMED),
    ):
        if value is not None and method not in methods:
            raise UsageError(f"{flag} is of no use with --method {method}; it belongs to {', '.join(methods)}")
    tuning = Tuning(
        half_life=DEFAULT.half_life if half_life is None else half_life,
        unsolved_cap=DEFAULT.unsolved_cap if unsolved_cap is None else unsolved_cap,
        rest=DEFAULT.rest if rest is None else rest,
        mastery=DEFAULT.mastery if mastery is None else mastery,
    )
    if not tuning.half_life > 0:
        raise UsageError(f"--half-life is {tuning.half_life:g}, expected a number above 0 (inf forgets nothing)")
    if not 0 <= tuning.unsolved_cap <= 1:
        raise UsageError(f"--unsolved-cap is {tuning.unsolved_cap:g}, expected a share from 0 to 1")
    if tuning.rest < 0:
        raise UsageError(f"--rest is {tuning.rest}, expected 0 or more steps")
    if not 0 < tuning.mastery <= 1:
        raise UsageError(f"--mastery is {tuning.mastery:g}, expected a pass rate above 0 and at most 1")
    return tuning


def _tell(run: Run, tally: Tally, step: int, batch: int, shares: Shares | None, tuning: Tuning) -> None:
    """The figures for `--metrics`, what looks wrong, and the closing line."""
    chosen = tally.reasons.total()
    run.figures(selected=chosen, reasons=dict(tally.reasons))
    if chosen < batch:
        _tell_short(run, tally, batch, shares, tuning)
    parts = ", ".join(f"{count} {reason}" for reason, count in tally.reasons.most_common())
    classes = _tell_mix(run, tally, shares) if shares else ""
    run.say(f"{chosen} problems for step {step}" + (f": {parts}" if parts else "") + classes)


def _tell_mix(run: Run, tally: Tally, shares: Shares) -> str:
    """Figures and warnings of the classes; the part of the closing line that tells of them."""
    run.figures(
        classes={name: tally.classes[name] for name in shares},
        class_sizes={name: tally.pool.classes[name] for name in shares},
    )
    # with no operator in the input yet there was no synthesis, and a mix may name what it will bring
    coming = set() if tally.operators else set(OPERATORS)
    unknown = [name for name in shares if names_an_operator(name) and name not in tally.operators | coming]
    if unknown:
        there = ", ".join(sorted(tally.operators)) or "only frontier, generation-N, children and problems"
        run.warn(f"--mix names {', '.join(unknown)}, and no problem has that operator; there are {there}")
    if "frontier" in shares:
        outcomes = {name: tally.pool.outcomes[name] for name in (*OUTCOMES, "untried")}
        run.figures(outcomes=outcomes)
        run.say("of all: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in outcomes.items()))
    told = (f"{name} {tally.classes[name]} of {tally.pool.classes[name]}" for name in shares)
    return "; " + ", ".join(told)


def _tell_short(run: Run, tally: Tally, batch: int, shares: Shares | None, tuning: Tuning) -> None:
    chosen = tally.reasons.total()
    if chosen and chosen == tally.read and shares is None:
        run.warn(f"--batch is {batch} and there are {chosen} problems: all of them are chosen")
    elif tally.method == "never-give-up":
        left = "--unsolved-cap leaves" if shares is None else "--mix and --unsolved-cap leave"
        cap = math.floor(tuning.unsolved_cap * min(batch, tally.read) + 1e-9)
        run.say(f"--batch is {batch}, and {left} {counted(chosen, 'problem')} (at most {cap} unsolved): all are chosen")
    elif chosen:
        run.say(f"--batch is {batch}, and the classes of --mix have {counted(chosen, 'problem')}: all are chosen")
    else:
        run.say(f"no problem is in a class of --mix ({', '.join(shares or ())})")
