"""From logits to one token a row: temperature, a cut support if asked for, and a draw by one uniform number."""

import math

import torch
from torch import Tensor

from rlvr_cli.engines.engine import Sampling


def sampled_logprobs(logits: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities [rows, vocabulary] of the distribution that is sampled from.

    The order is temperature, then top-k, top-p and min-p on its result, then renormalization. Tokens outside of the
    support have -inf. bfloat16 and float16 logits are computed in float32.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    scores = torch.log_softmax(logits / (sampling.temperature or 1.0), dim=-1)
    if sampling.temperature == 0 or sampling.whole_support:
        return scores
    outside = torch.zeros_like(scores, dtype=torch.bool)
    if 0 < sampling.top_k < scores.shape[-1]:
        outside |= scores < scores.topk(sampling.top_k, dim=-1).values[:, -1:]
    if sampling.top_p < 1:
        ordered, order = scores.masked_fill(outside, -torch.inf).softmax(-1).sort(dim=-1, descending=True)
        # A token is outside when the ones before it reach top_p already; the first one never is.
        beyond = ordered.cumsum(-1) - ordered >= sampling.top_p
        beyond[:, 0] = False
        outside |= beyond.gather(1, order.argsort(dim=-1))
    if sampling.min_p > 0:
        outside |= scores < scores.max(dim=-1, keepdim=True).values + math.log(sampling.min_p)
    return torch.log_softmax(scores.masked_fill(outside, -torch.inf), dim=-1)


def draw(scores: Tensor, uniforms: Tensor, *, greedy: bool = False) -> Tensor:
    """One token a row [rows] by inversion of the cumulated probabilities, in float64; or the most probable one.

    `uniforms` [rows] are in [0, 1). A token of probability zero is never drawn.
    """
    if greedy:
        return scores.argmax(-1)
    cumulated = scores.double().exp().cumsum(-1)
    # `right` takes the first token whose cumulated probability exceeds the target: never one of probability zero.
    targets = uniforms.double()[:, None] * cumulated[:, -1:]
    tokens = torch.searchsorted(cumulated, targets, right=True)[:, 0]
    # Rounding of the product may reach the total itself; the first token that reaches it has some probability.
    last = torch.searchsorted(cumulated, cumulated[:, -1:].contiguous())[:, 0]
    return torch.minimum(tokens, last)
