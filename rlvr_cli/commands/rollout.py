"""`rlvr rollout`: options in, streams opened, figures out."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rlvr_cli import policy as policies
from rlvr_cli.checks import claim
from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run
from rlvr_cli.commands.sampling import (
    BATCH_SIZE,
    DEVICE,
    DTYPE,
    MODEL,
    ONCE,
    SEED,
    STOP,
    Tally,
    check_positive,
    check_sampling,
    load_engine,
    warn_of_cut_support,
    whole_groups,
)
from rlvr_cli.engines.engine import Sampling
from rlvr_cli.engines.tokens import Tokens
from rlvr_cli.errors import UserError
from rlvr_cli.records import Record, check_problem, problem_id
from rlvr_cli.stages.rollout import Plan
from rlvr_cli.stages.rollout import rollout as stage
from rlvr_cli.streams.outputs import Unit


@with_io()
def rollout(
    io: IO,
    model: MODEL = "tiny",
    samples: Annotated[int, opt("--samples", help="completions a problem (K)")] = 8,
    max_tokens: Annotated[int, opt("--max-tokens", help="longest completion, in tokens")] = 512,
    temperature: Annotated[float, opt("--temperature", help="0 is greedy, and nothing to train on")] = 1.0,
    top_p: Annotated[float, opt("--top-p", help="cuts the support: nothing to train on below 1")] = 1.0,
    top_k: Annotated[int, opt("--top-k", help="cuts the support: nothing to train on above 0")] = 0,
    min_p: Annotated[float, opt("--min-p", help="cuts the support: nothing to train on above 0")] = 0.0,
    stop: STOP = None,
    system: Annotated[str | None, opt("--system", help="system message put before `messages`")] = None,
    template: Annotated[
        Path | None, opt("--template", help="file with a chat template (Jinja) in place of the model's own")
    ] = None,
    seed: SEED = 0,
    batch_size: BATCH_SIZE = 128,
    dtype: DTYPE = "float32",
    device: DEVICE = "auto",
) -> None:
    """Sample K completions for each problem, with exact token ids and logprobs."""
    sampling = Sampling(temperature, top_p, top_k, min_p, tuple(stop or ()))
    check_positive(samples=samples, max_tokens=max_tokens, batch_size=batch_size)
    check_sampling(sampling)
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
    batch_size, granule = whole_groups(batch_size, samples)
    unit = Unit(identity=problem_id, size=lambda record: int(record["group_size"]), granule=granule)
    with Run("rollout", io, settings=settings) as run:
        warn_of_cut_support(run, sampling)
        tokens = Tokens(policy, system, chat_template)
        checker = Checker(tokens)
        problems = run.read(checker.check, unit=unit, before_model=True)
        checker.places.clear()  # `problems` reads the input once more
        run.total = run.total and run.total * samples
        engine = load_engine(policy, tokens, batch_size, dtype, device)
        plan = Plan(policy, samples, max_tokens, seed, sampling)
        tally = Tally()
        began = time.monotonic()
        run.write(tally.count(stage(problems, engine, plan, tokens.prompt_ids, tokens.text)), unit=unit)
        _report(run, tally, time.monotonic() - began)


def _report(run: Run, tally: Tally, seconds: float) -> None:
    run.figures(rollouts=tally.samples, **(figures := tally.figures(seconds)))
    run.say(
        f"{tally.samples} rollouts, {tally.tokens} tokens in {seconds:.1f} s ({figures['tokens_per_second']:.0f}/s)"
        + (f"; {tally.cut} cut by --max-tokens" if tally.cut else "")
        + (f"; {tally.failed} with a prompt that fills the model's context" if tally.failed else "")
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
        claim(self.places, record, "problem_id", problem_id(record), ONCE)


def _read_template(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"--template {path}: cannot be read ({error}); name a file with a Jinja template") from error
