"""The sampler against plain forward passes and known distributions."""

import pytest
import torch

from rlvr_cli.engines.engine import Request, Sampling
from rlvr_cli.errors import UserError
from rlvr_cli.training.batches import Sequence
from rlvr_cli.training.update import completion_logprobs

PROMPTS = (
    "Start 2 9 . A: - 4 . =>",
    "Start 0 7 . A: + 6 . B: double . C: flip . D: nines . =>",
    "Start 5 5 . A: + 1 . B: + 2 . C: + 3 . D: - 4 . E: - 5 . F: - 6 . =>",
)


def requests(tokens, count, max_tokens=60, first_seed=0):
    prompts = [tuple(tokens.prompt_ids({"prompt": prompt})) for prompt in PROMPTS]
    return [Request(prompts[i % len(prompts)], first_seed + i, max_tokens, i) for i in range(count)]


def as_sequence(request, sample, temperature):
    return Sequence("s", request.prompt, tuple(sample.token_ids), (), 0.0, temperature, 1)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_are_those_of_a_plain_forward_pass(make_engine, tokens, temperature):
    engine = make_engine(batch_size=16)
    model = engine._model
    for request, sample in engine.sample(requests(tokens, 40), Sampling(temperature)):
        with torch.no_grad():
            plain, _ = completion_logprobs(model, [as_sequence(request, sample, temperature)])
        assert torch.allclose(plain, torch.tensor(sample.logprobs), atol=1e-4)


def test_ids_do_not_depend_on_batch_size_or_order_in_float64(make_engine, tokens):
    todo = requests(tokens, 30)
    whole = {request.tag: sample for request, sample in make_engine(64, "float64").sample(todo, Sampling())}
    parts = {request.tag: sample for request, sample in make_engine(7, "float64").sample(todo[::-1], Sampling())}
    assert {tag: sample.token_ids for tag, sample in whole.items()} == {
        tag: sample.token_ids for tag, sample in parts.items()
    }
    assert len({tuple(sample.token_ids) for sample in whole.values()}) > len(PROMPTS)


def test_samples_follow_the_distribution(make_engine, tokens):
    """Chi-square over the first token after a prompt, 4,000 seeds, at a temperature that spreads it."""
    engine = make_engine(2000, "float64")
    ids = tuple(tokens.prompt_ids({"prompt": PROMPTS[1]}))
    with torch.no_grad():
        logits = engine._model(input_ids=torch.tensor([ids])).logits[0, -1]
    sampling = Sampling(temperature=4.0)
    expected = torch.softmax(logits / sampling.temperature, -1) * 4000
    counts = torch.zeros_like(expected)
    for _, sample in engine.sample([Request(ids, seed, 1, None) for seed in range(4000)], sampling):
        counts[sample.token_ids[0]] += 1
    big = expected >= 5
    observed = torch.cat([counts[big], counts[~big].sum()[None]])
    wanted = torch.cat([expected[big], expected[~big].sum()[None]])
    chi_square = ((observed - wanted) ** 2 / wanted.clamp(min=1e-9)).sum().item()
    freedom = len(observed) - 1
    assert freedom > 5
    # mean of the statistic is `freedom`, its deviation sqrt(2 freedom): five deviations
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5


def test_end_token_is_the_last_id_and_its_logprob_is_there(make_engine, tokens):
    engine = make_engine()
    for _, sample in engine.sample(requests(tokens, 12, max_tokens=120), Sampling()):
        assert len(sample.logprobs) == len(sample.token_ids)
        assert (sample.finish_reason == "stop") == (sample.token_ids[-1] in engine.end_ids)
        assert not engine.end_ids & set(sample.token_ids[:-1])


def test_budgets_are_each_requests_own(make_engine, tokens):
    prompt = tuple(tokens.prompt_ids({"prompt": PROMPTS[2]}))
    budgets = [1, 5, 9]
    found = list(make_engine().sample([Request(prompt, 3, budget, None) for budget in budgets], Sampling()))
    assert [len(sample.token_ids) for _, sample in found] == budgets
    assert all(sample.finish_reason == "length" for _, sample in found)
    longest = found[-1][1].token_ids
    assert all(longest[:budget] == sample.token_ids for budget, (_, sample) in zip(budgets, found, strict=True))


def test_greedy_takes_the_most_probable_token_whatever_the_seed(make_engine, tokens):
    samples = [sample for _, sample in make_engine().sample(requests(tokens, 6), Sampling(temperature=0))]
    assert [s.token_ids for s in samples[:3]] == [s.token_ids for s in samples[3:]]


def test_stop_text_ends_a_completion(make_engine, tokens):
    found = list(make_engine().sample(requests(tokens, 6), Sampling(stop=("= ",))))
    for _, sample in found:
        text = tokens.text(sample.token_ids)
        assert "= " in text
        assert "= " not in tokens.text(sample.token_ids[:-1])
        assert sample.finish_reason == "stop"


def test_a_stop_text_may_begin_in_a_completion_already_begun(make_engine, tokens):
    engine = make_engine(dtype="float64")
    greedy = Sampling(temperature=0)
    ((whole, full),) = engine.sample(requests(tokens, 1), greedy)
    cut = 9
    stop = tokens.text(full.token_ids[cut - 2 : cut + 1])  # two tokens before the cut, and the first one after it
    assert stop not in tokens.text(full.token_ids[:cut])
    assert stop not in tokens.text(full.token_ids[cut:])
    beginning = whole.prompt + tuple(full.token_ids[:cut])

    def after(begun, stop):
        request = Request(beginning, 0, 20, None, begun=begun)
        ((_, sample),) = engine.sample([request], Sampling(temperature=0, stop=(stop,)))
        return sample

    assert after(cut, stop).token_ids == full.token_ids[cut : cut + 1]
    assert after(cut, stop).finish_reason == "stop"
    assert after(0, stop).token_ids == full.token_ids[cut : cut + 20]  # the end of a prompt is no completion
    # what was said before is not said again by going on
    assert after(cut, tokens.text(full.token_ids[cut - 3 : cut])).token_ids == full.token_ids[cut : cut + 20]


def test_broken_weights_are_an_error_that_says_so(make_engine, tokens):
    engine = make_engine()
    with torch.no_grad():
        engine._model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(UserError, match="logits are not numbers"):
        list(engine.sample(requests(tokens, 2), Sampling()))
