"""Truncated supports and the draw itself, on small tables."""

import math

import pytest
import torch

from rlvr_cli.engines.engine import Sampling
from rlvr_cli.engines.sampling import draw, sampled_logprobs

PROBABILITIES = torch.tensor([[0.5, 0.25, 0.15, 0.07, 0.03]])


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(top_k=2), [0.5, 0.25]),
        (Sampling(top_p=0.8), [0.5, 0.25, 0.15]),
        (Sampling(top_p=0.75), [0.5, 0.25]),
        (Sampling(min_p=0.2), [0.5, 0.25, 0.15]),
        (Sampling(top_k=3, min_p=0.4), [0.5, 0.25]),
        (Sampling(top_k=3, top_p=0.8), [0.5, 0.25]),  # .83 of the .9 that top-k leaves
        (Sampling(top_p=0.8, min_p=0.4), [0.5, 0.25]),
        (Sampling(), [0.5, 0.25, 0.15, 0.07, 0.03]),
    ],
)
def test_support_is_cut_and_renormalized(sampling, kept):
    found = sampled_logprobs(PROBABILITIES.log(), sampling).exp()[0]
    wanted = torch.tensor([p / sum(kept) for p in kept] + [0.0] * (5 - len(kept)))
    assert torch.allclose(found, wanted, atol=1e-6)


def test_temperature_divides_the_logits():
    logits = torch.tensor([[1.0, 2.0, 4.0]])
    found = sampled_logprobs(logits, Sampling(temperature=0.5))
    assert torch.allclose(found, torch.log_softmax(logits * 2, -1))


def test_low_precision_logits_are_normalized_in_float32():
    assert sampled_logprobs(torch.zeros(1, 3, dtype=torch.bfloat16), Sampling()).dtype == torch.float32


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.24, 1), (0.26, 3), (0.999999999, 3)])
def test_draw_inverts_the_cumulated_probabilities_and_skips_impossible_tokens(uniform, token):
    scores = torch.tensor([[-math.inf, math.log(0.25), -math.inf, math.log(0.75), -math.inf]])
    assert draw(scores, torch.tensor([uniform], dtype=torch.float64)).item() == token
