"""The updates of one step: forward passes over the completions of both streams, gradient, AdamW."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlvr_cli.errors import UserError
from rlvr_cli.training.batches import STREAMS, Sequence, micro_batches, mini_batches
from rlvr_cli.training.loss import LossParts, TokenBatch, policy_gradient_loss, stream_weights, token_weights
from rlvr_cli.training.settings import UpdateSettings

_MEASURED = (
    *("policy_loss", "ratio", "ratio_max", "clip_fraction", "entropy", "kl"),
    *("logprob_gap", "logprob_gap_max", "logprob_drift_max"),
)


@dataclass
class StreamTotals:
    """Sums over the trained tokens of one stream in a step; `figures` makes the metrics of them.

    `gap` sums the distances between the sampler's and the trainer's logprobs of the same tokens. With logπ_old from the
    trainer these are all tokens, before any update. Else they are measured where it costs nothing, in the stream's
    first mini-batch: the step's first too, unless the stream has less sequences than there are mini-batches.
    `drift_max` is the largest such distance in any mini-batch: the policy's own motion in the step is in it.
    """

    mini_batches: int = 0  # those that held any
    tokens: int = 0
    policy_loss: float = 0.0
    kl: float = 0.0
    entropy: float = 0.0
    ratio: float = 0.0
    ratio_max: float = 0.0
    clipped: float = 0.0
    gap: float = 0.0
    gap_max: float = 0.0
    gap_tokens: int = 0
    drift_max: float = 0.0

    def add(self, parts: LossParts, tokens: int) -> None:
        """Add what a micro-batch of so many trained tokens came to."""
        self.tokens += tokens
        self.policy_loss += parts.policy.item()
        self.kl += parts.kl.item()
        self.entropy += parts.entropy.item()
        self.ratio += parts.ratio.item()
        self.ratio_max = max(self.ratio_max, parts.largest_ratio.item())
        self.clipped += parts.clipped.item()

    def measure_gap(self, gap: Tensor) -> None:
        """Add distances between the trainer's and the sampler's logprobs, [tokens]."""
        self.gap += gap.sum().item()
        self.gap_max = max(self.gap_max, gap.max().item())
        self.gap_tokens += len(gap)

    def figures(self) -> dict[str, float | None]:
        """Means over trained tokens, the largest of some, and the mean loss of the mini-batches that held any.

        The loss is the stream's own, before λ or α. What was not measured is None.
        """
        tokens = self.tokens
        if not tokens:
            return {"tokens_trained": 0} | dict.fromkeys(_MEASURED)
        return {
            "tokens_trained": tokens,
            "policy_loss": self.policy_loss / self.mini_batches,
            "ratio": self.ratio / tokens,
            "ratio_max": self.ratio_max,
            "clip_fraction": self.clipped / tokens,
            "entropy": self.entropy / tokens,
            "kl": self.kl / tokens,
            "logprob_gap": self.gap / self.gap_tokens if self.gap_tokens else None,
            "logprob_gap_max": self.gap_max if self.gap_tokens else None,
            "logprob_drift_max": self.drift_max,
        }


@dataclass
class Totals:
    """Sums over the updates of a step, and those over the tokens of each stream."""

    updates: int = 0
    loss: float = 0.0
    grad_norm: float = 0.0
    grad_norm_max: float = 0.0
    streams: dict[str, StreamTotals] = field(default_factory=lambda: {name: StreamTotals() for name in STREAMS})

    def figures(self) -> dict[str, float | None]:
        """Means over updates, and the largest gradient norm; without an update nothing was measured: None."""
        updates = self.updates
        return {
            "updates": updates,
            "tokens_trained": sum(stream.tokens for stream in self.streams.values()),
            "loss": self.loss / updates if updates else None,
            "grad_norm": self.grad_norm / updates if updates else None,
            "grad_norm_max": self.grad_norm_max if updates else None,
        }


def completion_logprobs(model: Any, sequences: list[Sequence], entropy_gradient: bool = False) -> tuple[Tensor, Tensor]:
    """logπ of the sampled tokens and the entropies of their distributions, both [tokens], sequence after sequence.

    At each sequence's own temperature. Right padding under a causal mask: no token sees the padding. Without
    `entropy_gradient` the entropies are figures alone: their graph would hold the logits twice more.
    """
    device = model.device
    width = max(sequence.tokens for sequence in sequences)
    ids = torch.zeros(len(sequences), width, dtype=torch.long)
    rows: list[int] = []
    columns: list[int] = []
    targets: list[int] = []
    temperatures: list[float] = []
    for row, sequence in enumerate(sequences):
        ids[row, : sequence.tokens] = torch.tensor(sequence.context + sequence.completion)
        # position p predicts token p + 1
        columns += range(len(sequence.context) - 1, sequence.tokens - 1)
        rows += [row] * len(sequence.completion)
        targets += sequence.completion
        temperatures += [sequence.temperature] * len(sequence.completion)
    logits = model(input_ids=ids.to(device), use_cache=False).logits
    logits = logits[torch.tensor(rows, device=device), torch.tensor(columns, device=device)]
    logits = logits if logits.dtype == torch.float64 else logits.float()
    scores = torch.log_softmax(logits / torch.tensor(temperatures, device=device, dtype=logits.dtype)[:, None], dim=-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        # a token of probability 0 adds nothing, and 0 times its -inf would be no number
        entropy = torch.special.entr(scores.exp()).sum(-1)
    return scores.gather(1, torch.tensor(targets, device=device)[:, None])[:, 0], entropy


@torch.no_grad()
def frozen_logprobs(model: Any, sequences: list[Sequence], micro_tokens: int) -> dict[str, Tensor]:
    """logπ of each sequence's completion [tokens] under a model that is not trained now, by sequence id."""
    found: dict[str, Tensor] = {}
    for part in micro_batches(sequences, micro_tokens):
        logp, _ = completion_logprobs(model, part)
        pieces = torch.split(logp, [len(sequence.completion) for sequence in part])
        found.update(zip((sequence.id for sequence in part), pieces, strict=True))
    return found


def accumulate_gradient(
    model: Any,
    batch: list[Sequence],
    settings: UpdateSettings,
    totals: Totals,
    old: dict[str, Tensor],
    reference: dict[str, Tensor],
) -> None:
    """Add the gradient of one mini-batch's loss, stream by stream, and its figures to `totals`.

    Each stream has denominators of its own, over all of its micro-batches. `old` and `reference` hold logprobs by
    sequence id where they are not the sampler's or not wanted.
    """
    for name, stream_weight in stream_weights(settings.loss).items():
        sequences = [sequence for sequence in batch if sequence.stream == name]
        if not sequences:
            continue  # it contributes 0
        stream = totals.streams[name]
        stream.mini_batches += 1
        lengths = [len(sequence.completion) for sequence in sequences]
        weights = token_weights(lengths, settings.aggregation, [sequence.max_tokens for sequence in sequences])
        weight_of = dict(zip((sequence.id for sequence in sequences), weights, strict=True))
        for part in micro_batches(sequences, settings.micro_tokens):
            logp, entropy = completion_logprobs(model, part, settings.loss.entropy_coef != 0)
            sampler = logp.new_tensor([value for sequence in part for value in sequence.logprobs])
            tokens = TokenBatch(
                old=torch.cat([old[sequence.id] for sequence in part]) if old else sampler,
                sampler=sampler,
                advantage=_by_token(logp, part, [sequence.advantage for sequence in part]),
                weight=_by_token(logp, part, [weight_of[sequence.id] for sequence in part]),
                reference=torch.cat([reference[sequence.id] for sequence in part]) if reference else None,
            )
            parts = policy_gradient_loss(logp, entropy, tokens, settings.loss)
            loss = stream_weight * parts.total
            loss.backward()  # type: ignore[no-untyped-call]
            totals.loss += loss.item()
            stream.add(parts, len(logp))
            distance = (logp.detach() - sampler).abs()
            stream.drift_max = max(stream.drift_max, distance.max().item())
            if stream.mini_batches == 1 and not old:
                stream.measure_gap(distance)


def _by_token(like: Tensor, part: list[Sequence], values: list[float]) -> Tensor:
    """One value a sequence, repeated for each of its tokens."""
    return like.new_tensor(values).repeat_interleave(
        torch.tensor([len(sequence.completion) for sequence in part], device=like.device)
    )


def update(
    model: Any,
    optimizer: torch.optim.Optimizer,
    sequences: list[Sequence],
    settings: UpdateSettings,
    updates_before: int,
    reference: Any = None,
    advance: Callable[[int], None] = lambda updates: None,
) -> Totals:
    """Train on a step's sequences: `epochs` passes, one optimizer update a mini-batch.

    A stream of weight 0 is not computed, and a mini-batch of nothing else makes no update: weight decay and momentum
    alone are no step.

    Raises UserError when a loss or gradient is not finite; the model is then of no use and nothing is to be written.
    """
    totals = Totals()
    weights = stream_weights(settings.loss)
    weighted = [sequence for sequence in sequences if weights[sequence.stream]]
    old: dict[str, Tensor] = {}
    if settings.old_logprobs == "trainer":
        old = frozen_logprobs(model, weighted, settings.micro_tokens)
        for sequence in weighted:
            logp = old[sequence.id]
            totals.streams[sequence.stream].measure_gap((logp - logp.new_tensor(sequence.logprobs)).abs())
    frozen = frozen_logprobs(reference, weighted, settings.micro_tokens) if reference is not None else {}
    batches = [
        kept
        for epoch in range(settings.epochs)
        for batch in mini_batches(sequences, settings.mini_batch, settings.seed, epoch)
        if (kept := [sequence for sequence in batch if weights[sequence.stream]])
    ]
    for index, batch in enumerate(batches):
        optimizer.zero_grad(set_to_none=True)
        accumulate_gradient(model, batch, settings, totals, old, frozen)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm).item()
        if not (norm < float("inf") and abs(totals.loss) < float("inf")):
            raise UserError(
                f"update {index + 1} of {len(batches)}: loss or gradient is not finite (gradient norm {norm}); "
                "nothing was written; lower --learning-rate or look at the records' logprobs"
            )
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * min(1.0, (updates_before + index + 1) / max(settings.warmup, 1))
        optimizer.step()
        totals.updates += 1
        totals.grad_norm += norm
        totals.grad_norm_max = max(totals.grad_norm_max, norm)
        advance(1)
    if not all(parameter.isfinite().all() for parameter in model.parameters()):
        raise UserError("the updated weights are not finite; nothing was written; lower --learning-rate")
    return totals
