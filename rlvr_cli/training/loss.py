"""The policy-gradient loss, to be read top to bottom. Symbols as in PPO (arXiv 1707.06347) and DAPO (arXiv 2503.14476).

    ratio   ρ = exp(logπ − logπ_old)
    token   L = −min(ρ A, clip(ρ, 1 − ε_low, 1 + ε_high) A), and for A < 0 at most −c A (dual clip, arXiv 1912.09729)
    KL      k3 = exp(Δ) − Δ − 1 with Δ = logπ_ref − logπ
    stream  Σ w (L · iw + β k3 − η H) over the tokens that the stream's rollouts of the mini-batch sampled themselves,
            the weight w of each token set by the aggregation over all of them
    total   L_main + λ L_branch, or (1 − α) L_main + α L_branch (Deep Dense Exploration, arXiv 2602.14169)

The branches of a pivot inherit a prefix of a failed main rollout. It is context to them: it has no token here.

Departures from the textbook: no critic (A is the group's), no value loss, and the weight w is one number a token, fixed
before any micro-batch is formed: the gradient does not depend on how the mini-batch is cut.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rlvr_cli.training.settings import LossSettings


@dataclass(frozen=True)
class TokenBatch:
    """The trained tokens of a micro-batch of one stream, flat: every field is [tokens].

    `old` is logπ_old of the ratio; `sampler` the logprob in the record; `weight` the aggregation's; `reference`
    logπ_ref, None without a KL term.
    """

    old: Tensor
    sampler: Tensor
    advantage: Tensor
    weight: Tensor
    reference: Tensor | None = None


@dataclass(frozen=True)
class LossParts:
    """`total` carries the gradient; the others are sums over tokens, detached, for the metrics."""

    total: Tensor
    policy: Tensor
    kl: Tensor
    entropy: Tensor
    ratio: Tensor
    largest_ratio: Tensor
    clipped: Tensor


def policy_gradient_loss(logp: Tensor, entropy: Tensor, batch: TokenBatch, settings: LossSettings) -> LossParts:
    """The part of its stream's loss that one micro-batch has, divided by the mini-batch's denominators already.

    `logp` [tokens] is logπ of the policy that is trained, `entropy` [tokens] that of its next-token distribution, both
    at the temperature of sampling.
    """
    advantage = batch.advantage
    ratio = (logp - batch.old).exp()
    unclipped = ratio * advantage
    clipped = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high) * advantage
    pg_loss = -torch.minimum(unclipped, clipped)
    pg_loss = torch.where(advantage < 0, torch.minimum(pg_loss, -settings.dual_clip * advantage), pg_loss)
    # With logπ_old from the sampler ρ holds the mismatch already, and this weight is exp(0) = 1.
    pg_loss = pg_loss * (batch.old - batch.sampler).exp().clamp(max=settings.importance_cap)

    kl = torch.zeros_like(logp)
    if batch.reference is not None:
        delta = batch.reference - logp
        kl = delta.exp() - delta - 1
    total = (batch.weight * (pg_loss + settings.kl_coef * kl - settings.entropy_coef * entropy)).sum()
    return LossParts(
        total=total,
        policy=(batch.weight * pg_loss).sum().detach(),
        kl=kl.sum().detach(),
        entropy=entropy.sum().detach(),
        ratio=ratio.sum().detach(),
        largest_ratio=ratio.max().detach(),
        clipped=(clipped < unclipped).sum().detach(),
    )


def token_weights(lengths: list[int], aggregation: str, max_tokens: list[int]) -> list[float]:
    """The weight of each token of each sequence, so that a stream's loss is a plain weighted sum.

    `lengths` are the trained tokens of the stream's sequences in the mini-batch: those that they sampled themselves.
    `token-mean`: 1 / all tokens. `sequence-mean` (GRPO, arXiv 2402.03300): 1 / (sequences × own length). `constant`
    (Dr. GRPO, arXiv 2503.20783): 1 / Σ max_tokens, a branch's being the budget of its whole answer: what a token counts
    is to depend neither on how long the completions are nor on how deep the pivots lie.
    """
    if aggregation == "token-mean":
        return [1 / sum(lengths)] * len(lengths)
    if aggregation == "sequence-mean":
        return [1 / (len(lengths) * length) for length in lengths]
    if aggregation == "constant":
        return [1 / sum(max_tokens)] * len(lengths)
    raise ValueError(f"unknown aggregation {aggregation!r}")


def stream_weights(settings: LossSettings) -> dict[str, float]:
    """What the loss of each stream is multiplied with: 1 and λ, or 1 − α and α where α is given."""
    if settings.alpha is None:
        return {"main": 1.0, "branch": settings.branch_weight}
    return {"main": 1 - settings.alpha, "branch": settings.alpha}
