"""What the commands that sample have in common: options, their checks, whole groups, the closing figures."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rlvr_cli.commands.options import opt
from rlvr_cli.commands.run import Run
from rlvr_cli.engines.engine import Sampling
from rlvr_cli.engines.tokens import Tokens
from rlvr_cli.errors import UsageError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record

if TYPE_CHECKING:
    from rlvr_cli.engines.transformers_engine import TransformersEngine

MODEL = Annotated[str, opt("--model", help="policy: `tiny` or a local directory in Hugging Face form")]
STOP = Annotated[list[str] | None, opt("--stop", help="end a completion after this text; may be repeated")]
SEED = Annotated[int, opt("--seed", help="the run's seed; each sample's own is derived from it")]
BATCH_SIZE = Annotated[int, opt("--batch-size", help="sequences sampled at once")]
DTYPE = Annotated[Literal["float32", "bfloat16", "float64"], opt("--dtype", help="precision of the forward pass")]
DEVICE = Annotated[str, opt("--device", help="cpu, cuda, or auto for the better one here")]

ONCE = "rlvr convert --drop-duplicates keeps the first"


LARGEST_COUNT = 2**20  # of samples a group: what counts them later has room for no more


def check_positive(**options: int) -> None:
    """Raise UsageError for an option, named as its parameter is, that is less than 1, or samples beyond all use."""
    for name, value in options.items():
        if value < 1:
            raise UsageError(f"--{name.replace('_', '-')} is {value}, expected at least 1")
    if options.get("samples", 1) > LARGEST_COUNT:
        raise UsageError(f"--samples is {options['samples']}, expected at most {LARGEST_COUNT}")


def check_sampling(sampling: Sampling) -> None:
    """Raise UsageError for what no distribution is, or would end every completion at once."""
    if "" in sampling.stop:
        raise UsageError("--stop is empty: every completion would end at once")
    if sampling.temperature != 0 and not 1e-4 <= sampling.temperature < math.inf:
        raise UsageError(f"--temperature is {sampling.temperature}, expected 0 (greedy) or a number from 0.0001 on")
    if not 0 < sampling.top_p <= 1 or sampling.top_k < 0 or not 0 <= sampling.min_p < 1:
        raise UsageError("expected 0 < --top-p <= 1, --top-k >= 0, 0 <= --min-p < 1")


def warn_of_cut_support(run: Run, sampling: Sampling) -> None:
    """Say that there is nothing to train on, where that is so."""
    if not sampling.whole_support:
        run.warn("with temperature 0, top-p, top-k or min-p rlvr train-step refuses these records")


def whole_groups(batch_size: int, samples: int) -> tuple[int, int]:
    """The batch size cut to whole groups, and the granule of resuming in groups (see Unit)."""
    if batch_size > samples:
        batch_size -= batch_size % samples  # little work is owed again after a kill; a prompt is computed once
    # a resumed run begins where a batch of the unbroken run did: the same shapes, the same rounding
    return batch_size, math.lcm(batch_size, samples) // samples


def load_engine(policy: Policy, tokens: Tokens, batch_size: int, dtype: str, device: str) -> "TransformersEngine":
    """The engine, its model loaded: to be called when the inputs are known to be good."""
    from rlvr_cli.engines.transformers_engine import TransformersEngine  # torch takes seconds to import

    return TransformersEngine(
        policy, batch_size=batch_size, dtype=dtype, device=device, end_ids=tokens.end_ids, decode=tokens.text
    )


@dataclass
class Tally:
    """What the closing summary tells of the samples that went by; `tokens` are those sampled, not the inherited."""

    samples: int = 0
    tokens: int = 0
    inherited: int = 0
    stopped: int = 0
    failed: int = 0

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the records on and count them."""
        for record in records:
            inherited = record.get("prefix_len", 0)
            self.samples += 1
            self.tokens += len(record["completion_token_ids"]) - inherited
            self.inherited += inherited
            self.stopped += record["finish_reason"] == "stop"
            self.failed += record["finish_reason"] == "error"
            yield record

    @property
    def cut(self) -> int:
        """How many ended with their budget."""
        return self.samples - self.stopped - self.failed

    def figures(self, seconds: float) -> dict[str, Any]:
        """The figures for `--metrics` that every sampling command has."""
        return {
            "tokens_generated": self.tokens,
            "tokens_per_second": self.tokens / max(seconds, 1e-9),
            "finish_stop": self.stopped,
            "finish_length": self.cut,
            "finish_error": self.failed,
        }
