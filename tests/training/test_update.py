"""The gradient of whole mini-batches on the embedded policy, in float64."""

import random

import pytest
import torch

from rlvr_cli.engines.models import load_model
from rlvr_cli.errors import UserError
from rlvr_cli.training.batches import Sequence
from rlvr_cli.training.settings import LossSettings, UpdateSettings
from rlvr_cli.training.update import Totals, accumulate_gradient, completion_logprobs, frozen_logprobs, update


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(tiny, "float64", "cpu")


def random_sequences(count: int, seed: int = 0) -> list[Sequence]:
    """Random ids and logprobs: nothing about them fits, which is what a parity test wants."""
    rng = random.Random(seed)
    sequences = []
    for index in range(count):
        completion = tuple(rng.randrange(4, 40) for _ in range(rng.randint(1, 12)))
        sequences.append(
            Sequence(
                id=f"s{index}",
                context=tuple(rng.randrange(4, 40) for _ in range(rng.randint(1, 9))),
                completion=completion,
                logprobs=tuple(rng.uniform(-8, -2) for _ in completion),
                advantage=rng.uniform(-1, 1),
                temperature=rng.choice([1.0, 0.7]),
                max_tokens=16,
            )
        )
    return sequences


def gradient_of(model) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def accumulated(model, sequences, settings, reference=None):
    model.zero_grad(set_to_none=True)
    totals = Totals()
    accumulate_gradient(model, sequences, settings, totals, {}, reference or {})
    return totals.loss, gradient_of(model)


def plain_loss(model, sequences, settings, reference=None):
    """Sequence by sequence, token by token, no batching, no padding."""
    s = settings.loss
    total = torch.zeros((), dtype=torch.float64)
    all_tokens = sum(len(sequence.completion) for sequence in sequences)
    for sequence in sequences:
        ids = torch.tensor([sequence.context + sequence.completion])
        logits = model(input_ids=ids, use_cache=False).logits[0] / sequence.temperature
        for index, (token, old) in enumerate(zip(sequence.completion, sequence.logprobs, strict=True)):
            distribution = torch.log_softmax(logits[len(sequence.context) + index - 1], -1)
            ratio = (distribution[token] - old).exp()
            clipped = ratio.clamp(1 - s.clip_low, 1 + s.clip_high)
            loss = -torch.min(ratio * sequence.advantage, clipped * sequence.advantage)
            if sequence.advantage < 0:
                loss = torch.min(loss, torch.tensor(-s.dual_clip * sequence.advantage, dtype=torch.float64))
            if reference:
                delta = reference[sequence.id][index] - distribution[token]
                loss = loss + s.kl_coef * (delta.exp() - delta - 1)
            loss = loss - s.entropy_coef * -(distribution.exp() * distribution).sum()
            weight = {
                "token-mean": 1 / all_tokens,
                "sequence-mean": 1 / (len(sequences) * len(sequence.completion)),
                "constant": 1 / sum(other.max_tokens for other in sequences),
            }[settings.aggregation]
            total = total + weight * loss
    return total


@pytest.mark.parametrize("aggregation", ["token-mean", "sequence-mean", "constant"])
def test_loss_and_gradient_equal_a_plain_version(model, aggregation):
    sequences = random_sequences(9)
    settings = UpdateSettings(loss=LossSettings(kl_coef=0.05, entropy_coef=0.01), aggregation=aggregation)
    reference = {sequence.id: torch.full((len(sequence.completion),), -4.0).double() for sequence in sequences}
    loss, gradient = accumulated(model, sequences, settings, reference)
    model.zero_grad(set_to_none=True)
    wanted = plain_loss(model, sequences, settings, reference)
    wanted.backward()
    assert loss == pytest.approx(wanted.item(), rel=1e-9)
    assert torch.allclose(gradient, gradient_of(model), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("micro_tokens", [1, 40, 100, 10**6])
def test_any_micro_batch_gives_the_same_gradient(model, micro_tokens):
    sequences = random_sequences(17, seed=1)
    loss, gradient = accumulated(model, sequences, UpdateSettings())
    other_loss, other = accumulated(model, sequences, UpdateSettings(micro_tokens=micro_tokens))
    assert other_loss == pytest.approx(loss, rel=1e-12)
    assert torch.allclose(other, gradient, rtol=1e-9, atol=1e-12)


def test_the_gap_between_sampler_and_trainer_is_measured(model):
    sequences = random_sequences(4)
    with torch.no_grad():
        exact = frozen_logprobs(model, sequences, 10**6)
    shifted = [
        Sequence(**{**vars(s), "logprobs": tuple((exact[s.id] + (0.5 if s.id == "s2" else 0.1)).tolist())})
        for s in sequences
    ]
    totals = Totals()
    accumulate_gradient(model, shifted, UpdateSettings(), totals, {}, {})
    main = totals.streams["main"]
    assert main.gap_max == pytest.approx(0.5)
    count = sum(len(s.completion) for s in shifted)
    assert main.gap == pytest.approx(0.1 * count + 0.4 * len(shifted[2].completion))
    assert main.gap_tokens == count


def test_without_an_update_nothing_was_measured(model):
    totals = update(model, torch.optim.AdamW(model.parameters(), lr=0.0), [], UpdateSettings(), 0)
    assert set(totals.figures().values()) == {None, 0}
    assert all(set(stream.figures().values()) == {None, 0} for stream in totals.streams.values())


def test_trainer_logprobs_make_the_first_ratio_one(tiny):
    model = load_model(tiny, "float64", "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    settings = UpdateSettings(old_logprobs="trainer", mini_batch=0, learning_rate=0.0)
    figures = update(model, optimizer, random_sequences(5), settings, 0).streams["main"].figures()
    assert figures["ratio"] == pytest.approx(1.0)
    assert figures["ratio_max"] == pytest.approx(1.0)


def test_an_update_raises_good_completions_and_lowers_bad_ones(tiny):
    model = load_model(tiny, "float64", "cpu")
    exact = frozen_logprobs(model, random_sequences(8), 10**6)
    sequences = [
        Sequence(**{**vars(s), "logprobs": tuple(exact[s.id].tolist()), "advantage": 1.0 if i % 2 else -1.0})
        for i, s in enumerate(random_sequences(8))
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    totals = update(model, optimizer, sequences, UpdateSettings(learning_rate=1e-3, warmup=0, epochs=2), 0)
    assert totals.updates == 2
    after = frozen_logprobs(model, sequences, 10**6)
    change = {s.id: (after[s.id].sum() - exact[s.id].sum()).item() for s in sequences}
    good = [change[s.id] for s in sequences if s.advantage > 0]
    bad = [change[s.id] for s in sequences if s.advantage < 0]
    assert sum(good) > sum(bad)
    assert sum(good) > 0 > sum(bad)


def test_warm_up_counts_updates_over_all_steps(tiny):
    model = load_model(tiny, "float64", "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    settings = UpdateSettings(learning_rate=8e-4, warmup=8, mini_batch=0)
    for before, rate in ((0, 1e-4), (3, 4e-4), (7, 8e-4), (100, 8e-4)):
        update(model, optimizer, random_sequences(2), settings, before)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_a_loss_that_is_not_finite_stops_the_step(tiny):
    model = load_model(tiny, "float64", "cpu")
    bad = Sequence("x", (4,), (5, 6), (float("-inf"), -1.0), 1.0, 1.0, 8)
    with pytest.raises(UserError, match="not finite"):
        update(model, torch.optim.AdamW(model.parameters(), lr=0.0), [bad], UpdateSettings(), 0)


def test_entropy_is_that_of_the_tempered_distribution(model):
    sequence = random_sequences(1)[0]
    _, entropy = completion_logprobs(model, [sequence])
    logits = model(input_ids=torch.tensor([sequence.context])).logits[0, -1] / sequence.temperature
    assert entropy[0].item() == pytest.approx(torch.distributions.Categorical(logits=logits).entropy().item())


def test_weights_that_an_update_breaks_are_never_written(tiny):
    model = load_model(tiny, "float64", "cpu")
    settings = UpdateSettings(learning_rate=float("inf"), mini_batch=0)
    with pytest.raises(UserError, match="updated weights are not finite"):
        update(model, torch.optim.AdamW(model.parameters(), lr=0.0), random_sequences(3), settings, 0)
