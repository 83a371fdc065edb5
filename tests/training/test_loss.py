"""Loss and gradient against a slow, plain version in float64, written from the formulas alone."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.training.loss import TokenBatch, policy_gradient_loss, token_weights
from rlvr_cli.training.settings import LossSettings


def plain_token_loss(logp, old, sampler, advantage, reference, entropy, s):
    """One token, in plain floats, from algorithms: clip, dual clip, truncated importance weight, k3, entropy."""
    ratio = math.exp(logp - old)
    loss = -min(ratio * advantage, min(max(ratio, 1 - s.clip_low), 1 + s.clip_high) * advantage)
    if advantage < 0:
        loss = min(loss, -s.dual_clip * advantage)
    loss *= min(math.exp(old - sampler), s.importance_cap)
    if reference is not None:
        delta = reference - logp
        loss += s.kl_coef * (math.exp(delta) - delta - 1)
    return loss - s.entropy_coef * entropy


def numeric_gradient(tokens, weights, s, step=1e-6):
    """Central differences of each token's loss by its logp."""
    gradient = []
    for (logp, *rest), weight in zip(tokens, weights, strict=True):
        up, down = (plain_token_loss(logp + sign * step, *rest, s) for sign in (1, -1))
        gradient.append(weight * (up - down) / (2 * step))
    return gradient


logprob = st.floats(-6, -0.01)
token = st.tuples(logprob, st.floats(-2, 2), st.floats(-1, 1), st.floats(-3, 3), st.floats(-1, 1), st.floats(0, 3))


@settings(deadline=None, max_examples=200)
@given(st.lists(token, min_size=1, max_size=8), st.booleans(), st.booleans())
def test_loss_and_gradient_equal_the_plain_version(drawn, with_reference, trainer_old):
    s = LossSettings(kl_coef=0.1 if with_reference else 0.0, entropy_coef=0.01)
    tokens = []
    for logp, old_gap, sampler_gap, advantage, reference_gap, entropy in drawn:
        old = logp + old_gap
        sampler = old + (sampler_gap if trainer_old else 0.0)
        tokens.append((logp, old, sampler, advantage, logp + reference_gap if with_reference else None, entropy))
    weights = [1 / len(tokens)] * len(tokens)
    column = [torch.tensor([row[i] or 0.0 for row in tokens], dtype=torch.float64) for i in range(6)]
    logp = column[0].requires_grad_()
    batch = TokenBatch(
        old=column[1],
        sampler=column[2],
        advantage=column[3],
        weight=torch.tensor(weights, dtype=torch.float64),
        reference=column[4] if with_reference else None,
    )
    parts = policy_gradient_loss(logp, column[5], batch, s)
    wanted = sum(w * plain_token_loss(*row, s) for row, w in zip(tokens, weights, strict=True))
    assert parts.total.item() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    parts.total.backward()
    ratios = (column[0] - column[1]).exp()
    kinks = torch.stack([(ratios - edge).abs() for edge in (1 - s.clip_low, 1 + s.clip_high, s.dual_clip)])
    if kinks.min() > 1e-4:  # no derivative at a kink
        for found, expected in zip(logp.grad.tolist(), numeric_gradient(tokens, weights, s), strict=True):
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("ratio", "advantage", "wanted"),
    [
        (1.5, 1.0, -1.28),  # clipped above
        (0.5, 1.0, -0.5),  # a falling ratio of a good token is not clipped
        (0.5, -1.0, 0.8),  # clipped below
        (1.5, -1.0, 1.5),  # a rising ratio of a bad token is not clipped ...
        (5.0, -1.0, 3.0),  # ... until the dual clip
    ],
)
def test_clipping_by_hand(ratio, advantage, wanted):
    logp = torch.tensor([math.log(ratio)], dtype=torch.float64)
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    batch = TokenBatch(old=zero, sampler=zero, advantage=one * advantage, weight=one)
    parts = policy_gradient_loss(logp, zero, batch, LossSettings())
    assert parts.total.item() == pytest.approx(wanted)


def test_importance_weight_is_capped_and_only_where_old_is_not_the_samplers():
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    for gap, weight in ((0.0, 1.0), (math.log(1.5), 1.5), (math.log(9), 2.0)):
        batch = TokenBatch(old=zero, sampler=zero - gap, advantage=one, weight=one)
        assert policy_gradient_loss(zero, zero, batch, LossSettings()).total.item() == pytest.approx(-weight)


def test_aggregations():
    lengths, budgets = [1, 3], [10, 10]
    assert token_weights(lengths, "token-mean", budgets) == [1 / 4, 1 / 4]
    assert token_weights(lengths, "sequence-mean", budgets) == [1 / 2, 1 / 6]
    assert token_weights(lengths, "constant", budgets) == [1 / 20, 1 / 20]
    with pytest.raises(ValueError, match="unknown aggregation"):
        token_weights(lengths, "median", budgets)
