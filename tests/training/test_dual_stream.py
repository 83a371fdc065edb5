"""Loss, gradient and figures of a dual-stream step against a plain version in float64, written from the records alone.

The plain version takes one record at a time, puts all of it through the model, and masks what was inherited.
"""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_dual_stream import made_up_records, only, plain_stream_loss, plain_tokens

from rlvr_cli.engines.models import load_model
from rlvr_cli.training.batches import Sequence, form_step, mini_batches
from rlvr_cli.training.loss import stream_weights
from rlvr_cli.training.settings import LossSettings, UpdateSettings
from rlvr_cli.training.update import Totals, accumulate_gradient, frozen_logprobs, update


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(tiny, "float64", "cpu")


def gradient_of(model) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def accumulated(model, records, wanted, reference=None, trainer=None):
    """Loss, gradient and totals of all records as one mini-batch; `trainer` is the model that gives logπ_old."""
    sequences = [sequence for stream in form_step(records, "dr-grpo", 0).values() for sequence in stream.sequences]
    frozen = frozen_logprobs(reference, sequences, 100) if reference is not None else {}
    old = frozen_logprobs(trainer, sequences, 100) if trainer is not None else {}
    totals = Totals()
    model.zero_grad(set_to_none=True)
    accumulate_gradient(model, sequences, wanted, totals, old, frozen)
    return totals.loss, gradient_of(model), totals


@pytest.fixture(scope="module")
def another(model):
    """A reference policy: the same model with its weights moved."""
    moved = copy.deepcopy(model)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return moved


@pytest.mark.parametrize(
    ("weights", "main", "branch"),
    [({}, 1, 1), ({"branch_weight": 0.3}, 1, 0.3), ({"alpha": 0.25}, 0.75, 0.25)],
    ids=["default", "lambda", "alpha"],
)
@pytest.mark.parametrize("aggregation", ["token-mean", "sequence-mean", "constant"])
def test_loss_and_gradient_equal_the_plain_version(model, another, aggregation, weights, main, branch):
    """With KL and entropy: they ride on each stream's weights as the policy's loss does."""
    records = made_up_records()
    s = LossSettings(kl_coef=0.05, entropy_coef=0.01, **weights)
    wanted = UpdateSettings(loss=s, aggregation=aggregation, micro_tokens=100)
    loss, gradient, _ = accumulated(model, records, wanted, another)
    model.zero_grad(set_to_none=True)
    plain = main * plain_stream_loss(model, only(records, "main"), aggregation, s, another)
    plain = plain + branch * plain_stream_loss(model, only(records, "branch"), aggregation, s, another)
    plain.backward()
    assert loss == pytest.approx(plain.item(), rel=1e-9)
    assert torch.allclose(gradient, gradient_of(model), rtol=1e-6, atol=1e-9)


def test_old_logprobs_of_the_trainer_bring_importance_weights(model, another):
    """The ratio is to the policy before the step, min(exp(logπ_old - logπ_sampler), 2) weighs each token's loss."""
    records = made_up_records()
    for record in records:  # some weights on each side of the cap
        record["logprobs"] = [value / 2 for value in record["logprobs"]]
    wanted = UpdateSettings(micro_tokens=100)
    loss, gradient, _ = accumulated(model, records, wanted, trainer=another)
    model.zero_grad(set_to_none=True)
    streams = (only(records, "main"), only(records, "branch"))
    plain = sum(plain_stream_loss(model, one, "token-mean", wanted.loss, trainer=another) for one in streams)
    plain.backward()
    assert loss == pytest.approx(plain.item(), rel=1e-9)
    assert torch.allclose(gradient, gradient_of(model), rtol=1e-6, atol=1e-9)
    assert loss != pytest.approx(accumulated(model, records, wanted)[0], rel=1e-3)


@pytest.mark.parametrize("micro_tokens", [1, 60, 10**6])
def test_any_micro_batch_gives_the_same_gradient(model, micro_tokens):
    records = made_up_records(1)
    loss, gradient, _ = accumulated(model, records, UpdateSettings())
    other_loss, other, _ = accumulated(model, records, UpdateSettings(micro_tokens=micro_tokens))
    assert other_loss == pytest.approx(loss, rel=1e-12)
    assert torch.allclose(other, gradient, rtol=1e-9, atol=1e-12)


def test_what_is_stored_of_inherited_tokens_moves_nothing(model):
    """Logprobs, and columns with advantages or masks a token: losses, gradient and figures stay, bit by bit."""
    records = made_up_records()
    changed = [record.extended() for record in records]
    for record in changed:
        inherited = record.get("prefix_len", 0)
        size = len(record["completion_token_ids"])
        record["logprobs"] = [-50.0] * inherited + record["logprobs"][inherited:]
        record["advantages"] = [9.0] * inherited + [0.0] * (size - inherited)
        record["mask"] = [1] * inherited + [0] * (size - inherited)
    assert sum(record["logprobs"].count(-50.0) for record in changed) > 20
    assert form_step(changed, "dr-grpo", 0) == form_step(records, "dr-grpo", 0)
    loss, gradient, totals = accumulated(model, records, UpdateSettings())
    other_loss, other, other_totals = accumulated(model, changed, UpdateSettings())
    assert (other_loss, other_totals) == (loss, totals)
    assert torch.equal(other, gradient)


def test_the_ids_of_inherited_tokens_are_context(model):
    """The test above would pass if they were left out: here they move the loss of the tokens after them."""
    records = only(made_up_records(), "branch")
    loss, _, _ = accumulated(model, records, UpdateSettings())
    for record in records:
        inherited = record["prefix_len"]
        record["completion_token_ids"] = [5] * inherited + record["completion_token_ids"][inherited:]
    assert accumulated(model, records, UpdateSettings())[0] != pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize(("alpha", "main", "branch"), [(None, 1, 2), (0.25, 0.75, 0.25), (0, 1, 0), (1, 0, 1)])
def test_an_empty_stream_contributes_nothing(model, alpha, main, branch):
    records = made_up_records()
    wanted = UpdateSettings(loss=LossSettings(branch_weight=2, alpha=alpha))
    both, gradient, _ = accumulated(model, records, wanted)
    sums = [0.0, torch.zeros_like(gradient)]
    for stream, weight in (("main", main), ("branch", branch)):
        alone, alone_gradient, totals = accumulated(model, only(records, stream), wanted)
        plain = plain_stream_loss(model, only(records, stream), "token-mean", wanted.loss)
        assert alone == pytest.approx(weight * plain.item(), rel=1e-9)
        (empty,) = (figures for name, figures in totals.streams.items() if name != stream)
        assert set(empty.figures().values()) == {0, None}
        sums = [sums[0] + alone, sums[1] + alone_gradient]
    assert both == pytest.approx(sums[0])
    assert torch.allclose(gradient, sums[1], rtol=1e-9, atol=1e-12)


def test_the_figures_of_each_stream_are_its_own(model, another):
    records = made_up_records()
    wanted = UpdateSettings(loss=LossSettings(branch_weight=0.3), micro_tokens=100)
    _, _, totals = accumulated(model, records, wanted, another)
    for stream in ("main", "branch"):
        found = list(plain_tokens(model, only(records, stream), wanted.loss, another))
        figures = totals.streams[stream].figures()
        pg_losses, ratios, gaps, entropies, k3s, clipped = (
            [float(token[i].detach()) for token in found] for i in range(2, 8)
        )
        assert figures["tokens_trained"] == len(found)
        assert figures["policy_loss"] == pytest.approx(sum(pg_losses) / len(found))  # before λ
        assert figures["ratio"] == pytest.approx(sum(ratios) / len(found))
        assert figures["ratio_max"] == pytest.approx(max(ratios))
        assert figures["logprob_gap"] == pytest.approx(sum(gaps) / len(found))
        assert figures["logprob_gap_max"] == pytest.approx(max(gaps))
        assert figures["entropy"] == pytest.approx(sum(entropies) / len(found))
        assert figures["kl"] == pytest.approx(sum(k3s) / len(found), rel=1e-5)
        assert figures["clip_fraction"] == pytest.approx(sum(clipped) / len(found))
        assert 0 < sum(clipped) != len(found) / 2
    together = totals.streams["main"].policy_loss + 0.3 * totals.streams["branch"].policy_loss
    assert totals.loss == pytest.approx(together)


def test_old_logprobs_of_the_trainer_are_measured_for_each_stream(tiny):
    records = made_up_records()
    step = form_step(records, "dr-grpo", 0)
    sequences = [sequence for stream in step.values() for sequence in stream.sequences]
    model = load_model(tiny, "float64", "cpu")
    wanted = UpdateSettings(old_logprobs="trainer", mini_batch=0, learning_rate=0.0)
    totals = update(model, torch.optim.AdamW(model.parameters(), lr=0.0), sequences, wanted, 0)
    for stream in ("main", "branch"):
        figures = totals.streams[stream].figures()
        gaps = [float(token[4].detach()) for token in plain_tokens(model, only(records, stream), wanted.loss)]
        assert figures["ratio"] == pytest.approx(1.0)
        assert figures["logprob_gap"] == pytest.approx(sum(gaps) / len(gaps))


def test_losses_are_means_over_the_mini_batches_that_held_the_stream(tiny):
    """Twelve main rollouts and three branches in four mini-batches: one has no branch and no part in the mean."""
    records = only(made_up_records(), "main") + [r for r in made_up_records() if r.get("pivot_id") == "p1"]
    step = form_step(records, "dr-grpo", 0)
    sequences = [sequence for stream in step.values() for sequence in stream.sequences]
    model = load_model(tiny, "float64", "cpu")
    wanted = UpdateSettings(mini_batch=4, learning_rate=0.0)
    totals = update(model, torch.optim.AdamW(model.parameters(), lr=0.0), sequences, wanted, 0)
    batches = mini_batches(sequences, 4, 0, 0)
    losses: dict[str, list[float]] = {"main": [], "branch": []}
    for batch in batches:
        held = {sequence.stream for sequence in batch}
        alone = Totals()
        accumulate_gradient(model, batch, wanted, alone, {}, {})
        for stream in held:
            losses[stream].append(alone.streams[stream].policy_loss)
    assert [len(losses["main"]), len(losses["branch"])] == [4, 3]
    for stream, values in losses.items():
        assert totals.streams[stream].figures()["policy_loss"] == pytest.approx(sum(values) / len(values))
    together = sum(sum(values) for values in losses.values())
    assert totals.figures()["loss"] == pytest.approx(together / 4)
    assert totals.figures()["updates"] == 4
    # the weights stand still, and the gradient norms are those of the mini-batches
    norms = []
    for batch in batches:
        model.zero_grad(set_to_none=True)
        accumulate_gradient(model, batch, wanted, Totals(), {}, {})
        norms.append(gradient_of(model).norm().item())
    assert totals.figures()["grad_norm"] == pytest.approx(sum(norms) / 4)
    assert totals.figures()["grad_norm_max"] == pytest.approx(max(norms))


def test_weights_of_the_streams():
    assert stream_weights(LossSettings()) == {"main": 1, "branch": 1}
    assert stream_weights(LossSettings(branch_weight=0.5)) == {"main": 1, "branch": 0.5}
    assert stream_weights(LossSettings(alpha=0.25)) == {"main": 0.75, "branch": 0.25}
    assert stream_weights(LossSettings(alpha=0.0)) == {"main": 1, "branch": 0}


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 40), st.integers(0, 9))
def test_each_mini_batch_has_its_share_of_both_streams(main, branch, size, seed):
    sequences = [Sequence(f"m{i}", (1,), (2,), (), 0.0, 1.0, 8) for i in range(main)]
    sequences += [Sequence(f"p{i}", (1,), (2,), (), 0.0, 1.0, 8, "branch") for i in range(branch)]
    batches = mini_batches(sequences, size, seed, 0)
    assert sorted(s.id for batch in batches for s in batch) == sorted(s.id for s in sequences)
    for counts in (
        [len(batch) for batch in batches],
        [sum(s.stream == "main" for s in batch) for batch in batches],
        [sum(s.stream == "branch" for s in batch) for batch in batches],
    ):
        assert max(counts, default=0) - min(counts, default=0) <= 1
    assert mini_batches(sequences[::-1], size, seed, 0) == batches
