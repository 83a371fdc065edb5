"""`rlvr resample`: options in, streams opened, figures out."""

import time
from dataclasses import dataclass, field
from typing import Annotated, Any

from rlvr_cli import policy as policies
from rlvr_cli.checks import claim
from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, counted
from rlvr_cli.commands.sampling import (
    BATCH_SIZE,
    DEVICE,
    DTYPE,
    MODEL,
    ONCE,
    SEED,
    Tally,
    check_positive,
    check_sampling,
    load_engine,
    warn_of_cut_support,
    whole_groups,
)
from rlvr_cli.engines.engine import Sampling
from rlvr_cli.engines.tokens import Tokens
from rlvr_cli.errors import RecordError, UsageError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record
from rlvr_cli.stages.resample import Plan, check_pivot, id_under
from rlvr_cli.stages.resample import resample as stage
from rlvr_cli.streams.outputs import Unit


@with_io()
def resample(
    io: IO,
    model: MODEL = "tiny",
    samples: Annotated[int, opt("--samples", help="branches a pivot (B)")] = 8,
    temperature: Annotated[float | None, opt("--temperature", help="of the new tokens; default: the parent's")] = None,
    top_p: Annotated[float | None, opt("--top-p", help="cuts the support; default: the parent's")] = None,
    top_k: Annotated[int | None, opt("--top-k", help="cuts the support; default: the parent's")] = None,
    min_p: Annotated[float | None, opt("--min-p", help="cuts the support; default: the parent's")] = None,
    stop: Annotated[
        list[str] | None,
        opt("--stop", help="end a branch after this text; may be repeated; default: the parent's"),
    ] = None,
    seed: SEED = 0,
    batch_size: BATCH_SIZE = 128,
    dtype: DTYPE = "float32",
    device: DEVICE = "auto",
) -> None:
    """Sample B branches from the exact tokens of each pivot, within the budget that the parent had left there."""
    given: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p}
    asked = {name: value for name, value in given.items() if value is not None}
    if stop:
        asked["stop"] = tuple(stop)
    check_positive(samples=samples, batch_size=batch_size)
    check_sampling(Sampling(**asked))
    policy = policies.find(model)
    settings = {
        "policy_id": policy.id,
        "policy_step": policy.step,
        "model": model,
        "samples": samples,
        "sampling": [given, stop],
        "seed": seed,
        "dtype": dtype,
        "batch_size": batch_size,
    }
    batch_size, granule = whole_groups(batch_size, samples)
    unit = Unit(
        identity=lambda record: str(record["pivot_id"]),
        size=lambda record: int(record["group_size"]),
        granule=granule,
    )
    with Run("resample", io, settings=settings) as run:
        checker = Checker(policy, asked)
        checked = run.read(checker.check, before_model=True)
        checker.places.clear()  # `checked` reads the input once more
        checker.warn(run)
        sampling = Sampling(**asked, **checker.parents)
        warn_of_cut_support(run, sampling)
        if batch_size < samples:
            run.warn(
                f"--batch-size {batch_size} is less than --samples {samples}: "
                "the prefix of a pivot is computed more than once"
            )
        run.total = run.total and run.total * samples
        pivots = run.owed((pivot.extended(pivot_id=id_under(policy, pivot)) for pivot in checked), unit)
        tokens = Tokens(policy)
        engine = load_engine(policy, tokens, batch_size, dtype, device)
        tally = Tally()
        began = time.monotonic()
        plan = Plan(policy, samples, seed, sampling)
        run.write(tally.count(stage(pivots, engine, plan, tokens.text)), unit=unit)
        _report(run, tally, samples, time.monotonic() - began)


def _report(run: Run, tally: Tally, samples: int, seconds: float) -> None:
    pivots = tally.samples // samples
    figures = tally.figures(seconds)
    run.figures(pivots=pivots, branches=tally.samples, tokens_inherited=tally.inherited, **figures)
    run.say(
        f"{tally.samples} branches of {counted(pivots, 'pivot')}, {tally.tokens} new tokens in {seconds:.1f} s "
        f"({figures['tokens_per_second']:.0f}/s) after {tally.inherited} inherited"
        + (f"; {tally.cut} cut by their max_tokens" if tally.cut else "")
        + (f"; {tally.failed} with a prefix that fills the model's context" if tally.failed else "")
    )


@dataclass
class Checker:
    """Checks pivots before the model is loaded.

    `asked` are the sampling parameters that options set; `parents` the others, as the first pivot has them: all pivots
    must, since one distribution is sampled from. `places` says where each pivot was first seen.
    """

    policy: Policy
    asked: dict[str, Any]
    parents: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    strangers: int = 0
    first_stranger: str | None = None
    _first: str | None = None

    def check(self, record: Record) -> None:
        """Raise RecordError for what is no pivot, was there before, or was sampled in another way than the first."""
        check_pivot(record, self.policy)
        self._check_sampling(record)
        # The same pivot twice would be sampled with the same seeds: the same branches, under the same ids.
        claim(self.places, record, "pivot_id", id_under(self.policy, record), ONCE)
        if record.get("policy_id", self.policy.id) != self.policy.id:  # a server's is not known
            self.strangers += 1
            self.first_stranger = self.first_stranger or record.where

    def _check_sampling(self, record: Record) -> None:
        absent = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "stop": ()}
        found = {name: record.get(name, value) for name, value in absent.items() if name not in self.asked}
        if "stop" in found:
            found["stop"] = tuple(found["stop"])
        if self._first is None:
            try:
                check_sampling(Sampling(**self.asked, **found))
            except UsageError as error:
                raise RecordError(f"{record.where}: cannot be sampled as its parent was: {error}") from error
            self.parents, self._first = found, record.where
        for name, value in found.items():
            if value != self.parents[name]:
                here, there = (list(it) if name == "stop" else it for it in (value, self.parents[name]))
                raise RecordError(
                    f"{record.where}: {name} is {here}, but {there} at {self._first}; "
                    f"give --{name.replace('_', '-')} for all branches, or resample them apart"
                )

    def warn(self, run: Run) -> None:
        """Say what may be a mistake, after the first reading."""
        if self.strangers:
            run.warn(
                f"{counted(self.strangers, 'pivot')} of another policy than {self.policy.name} "
                f"({self.policy.id}), the first at {self.first_stranger}; is --model the one that you mean?"
            )
