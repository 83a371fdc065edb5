"""`rlvr rollout`: options in, streams opened, figures out."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from rlvr_cli import policy as policies
from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run
from rlvr_cli.engines.engine import Sampling
from rlvr_cli.engines.tokens import Tokens
from rlvr_cli.errors import RecordError, UsageError, UserError
from rlvr_cli.records import Record, check_problem, problem_id
from rlvr_cli.streams.outputs import Unit


@with_io()
def rollout(
    io: IO,
    model: Annotated[str, opt("--model", help="policy: `tiny` or a local directory in Hugging Face form")] = "tiny",
    samples: Annotated[int, opt("--samples", help="completions a problem (K)")] = 8,
    max_tokens: Annotated[int, opt("--max-tokens", help="longest completion, in tokens")] = 512,
    temperature: Annotated[float, opt("--temperature", help="0 is greedy, and nothing to train on")] = 1.0,
    top_p: Annotated[float, opt("--top-p", help="cuts the support: nothing to train on below 1")] = 1.0,
    top_k: Annotated[int, opt("--top-k", help="cuts the support: nothing to train on above 0")] = 0,
    min_p: Annotated[float, opt("--min-p", help="cuts the support: nothing to train on above 0")] = 0.0,
    stop: Annotated[list[str] | None, opt("--stop", help="end a completion after this text; may be repeated")] = None,
    system: Annotated[str | None, opt("--system", help="system message put before `messages`")] = None,
    template: Annotated[
        Path | None, opt("--template", help="file with a chat template (Jinja) in place of the model's own")
    ] = None,
    seed: Annotated[int, opt("--seed", help="the run's seed; each sample's own is derived from it")] = 0,
    batch_size: Annotated[int, opt("--batch-size", help="sequences sampled at once")] = 128,
    dtype: Annotated[
        Literal["float32", "bfloat16", "float64"], opt("--dtype", help="precision of the forward pass")
    ] = "float32",
    device: Annotated[str, opt("--device", help="cpu, cuda, or auto for the better one here")] = "auto",
) -> None:
    """Sample K completions for each problem, with exact token ids and logprobs."""
    sampling = Sampling(temperature, top_p, top_k, min_p, tuple(stop or ()))
    _check_options(sampling, samples, max_tokens, batch_size)
    chat_template = _read_template(template)
    policy = policies.find(model)
    settings = {
        "policy_id": policy.id,
        "policy_step": policy.step,
        "model": model,
        "samples": samples,
        "max_tokens": max_tokens,
        "sampling": [temperature, top_p, top_k, min_p, sampling.stop],
        "system": system,
        "template": chat_template,
        "seed": seed,
        "dtype": dtype,
        "batch_size": batch_size,
    }
    if batch_size > samples:
        batch_size -= batch_size % samples  # whole groups, so that little work is owed again after a kill
    unit = Unit(
        identity=problem_id,
        size=lambda record: int(record["group_size"]),
        # a resumed run begins where a batch of the unbroken run did: the same shapes, the same rounding
        granule=math.lcm(batch_size, samples) // samples,
    )
    with Run("rollout", io, settings=settings) as run:
        if not sampling.whole_support:
            run.warn("with temperature 0, top-p, top-k or min-p rlvr train-step refuses these records")
        tokens = Tokens(policy, system, chat_template)
        checker = Checker(tokens)
        problems = run.read(checker.check, unit=unit, before_model=True)
        checker.places.clear()  # `problems` reads the input once more
        run.total = run.total and run.total * samples
        # torch and transformers take seconds to import: not before the inputs are known to be good
        from rlvr_cli.engines.transformers_engine import TransformersEngine
        from rlvr_cli.stages.rollout import Plan
        from rlvr_cli.stages.rollout import rollout as stage

        engine = TransformersEngine(
            policy, batch_size=batch_size, dtype=dtype, device=device, end_ids=tokens.end_ids, decode=tokens.text
        )
        plan = Plan(policy, samples, max_tokens, seed, sampling)
        tally = Tally()
        began = time.monotonic()
        run.write(tally.count(stage(problems, engine, plan, tokens.prompt_ids, tokens.text)), unit=unit)
        tally.report(run, time.monotonic() - began)


@dataclass
class Tally:
    """What the closing summary tells of the rollouts that went by."""

    rollouts: int = 0
    tokens: int = 0
    stopped: int = 0
    failed: int = 0

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the records on and count them."""
        for record in records:
            self.rollouts += 1
            self.tokens += len(record["completion_token_ids"])
            self.stopped += record["finish_reason"] == "stop"
            self.failed += record["finish_reason"] == "error"
            yield record

    def report(self, run: Run, seconds: float) -> None:
        """The figures for `--metrics` and the closing line."""
        run.figures(
            rollouts=self.rollouts,
            tokens_generated=self.tokens,
            tokens_per_second=self.tokens / max(seconds, 1e-9),
            finish_stop=self.stopped,
            finish_length=self.rollouts - self.stopped - self.failed,
            finish_error=self.failed,
        )
        cut = self.rollouts - self.stopped - self.failed
        rate = self.tokens / max(seconds, 1e-9)
        run.say(
            f"{self.rollouts} rollouts, {self.tokens} tokens in {seconds:.1f} s ({rate:.0f}/s)"
            + (f"; {cut} cut by --max-tokens" if cut else "")
            + (f"; {self.failed} with a prompt that fills the model's context" if self.failed else "")
        )


@dataclass
class Checker:
    """Checks problems before the model is loaded; `places` says where each problem_id was first seen."""

    tokens: Tokens
    places: dict[str, str] = field(default_factory=dict)

    def check(self, record: Record) -> None:
        """Raise RecordError for what is no problem, cannot be made a prompt, or was there before."""
        check_problem(record)
        self.tokens.check(record)
        # The same problem twice would be sampled with the same seeds: the same rollouts, under the same ids.
        name = problem_id(record)
        if name in self.places:
            raise RecordError(
                f"{record.where}: problem_id {name} stands at {self.places[name]} already; "
                "rlvr convert --drop-duplicates keeps the first"
            )
        self.places[name] = record.where


def _check_options(sampling: Sampling, samples: int, max_tokens: int, batch_size: int) -> None:
    for flag, value in (("--samples", samples), ("--max-tokens", max_tokens), ("--batch-size", batch_size)):
        if value < 1:
            raise UsageError(f"{flag} is {value}, expected at least 1")
    if "" in sampling.stop:
        raise UsageError("--stop is empty: every completion would end at once")
    if sampling.temperature != 0 and not 1e-4 <= sampling.temperature < math.inf:
        raise UsageError(f"--temperature is {sampling.temperature}, expected 0 (greedy) or a number from 0.0001 on")
    if not 0 < sampling.top_p <= 1 or sampling.top_k < 0 or not 0 <= sampling.min_p < 1:
        raise UsageError("expected 0 < --top-p <= 1, --top-k >= 0, 0 <= --min-p < 1")


def _read_template(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"--template {path}: cannot be read ({error}); name a file with a Jinja template") from error
