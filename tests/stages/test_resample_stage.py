"""The stage as a function: branches go on from the exact tokens of their parents, and each prefix is computed once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.engines.engine import Request, Sampling
from rlvr_cli.errors import RecordError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, check_columns, rollout_id, sample_seed, stable_hash
from rlvr_cli.stages.resample import Plan, check_pivot, resample
from rlvr_cli.stages.rollout import Plan as RolloutPlan
from rlvr_cli.stages.rollout import rollout
from rlvr_cli.tiny.problems import generate


@pytest.fixture(scope="module")
def parents(make_engine, tokens, tiny):
    """A rollout of each of ten problems of different lengths, judged wrong."""
    problems = [Record(record, f"p.jsonl:{n}") for n, record in enumerate(list(generate("eval"))[::40], 1)]
    plan = RolloutPlan(tiny, 1, 200, 5, Sampling(0.9))
    found = rollout(problems, make_engine(64, "float64"), plan, tokens.prompt_ids, tokens.text)
    return [record.extended(verdict="wrong", reward=0.0, extracted="4 2", shaping=-0.5) for record in found]


def pivot(parent, prefix_len, **columns):
    """As find-pivots writes it."""
    own = stable_hash(parent["rollout_id"], prefix_len, parent["policy_id"], parent["policy_step"])
    return parent.extended(
        pivot_id=own, prefix_len=prefix_len, depth=0.5, recoverability=0.25, utility=0.0625, **columns
    )


@pytest.fixture(scope="module")
def pivots(parents):
    """One a parent, in the middle, and the root and the last place of the first parent."""
    ends = [pivot(parents[0], 0), pivot(parents[0], len(parents[0]["completion_token_ids"]) - 1)]
    return ends + [pivot(parent, len(parent["completion_token_ids"]) // 2) for parent in parents]


def branched(pivots, engine, tokens, policy, samples=4, seed=0, sampling=Sampling(0.9)):  # noqa: B008
    return list(resample(pivots, engine, Plan(policy, samples, seed, sampling), tokens.text))


@pytest.fixture(scope="module")
def branches(pivots, make_engine, tokens, tiny):
    return branched(pivots, make_engine(64, "float64"), tokens, tiny)


def test_branches_begin_with_the_exact_ids_and_logprobs_of_their_parents(parents, branches):
    known = {parent["rollout_id"]: parent for parent in parents}
    for branch in branches:
        parent, length = known[branch["parent_rollout_id"]], branch["prefix_len"]
        assert branch["prompt_token_ids"] == parent["prompt_token_ids"]
        assert branch["completion_token_ids"][:length] == parent["completion_token_ids"][:length]
        assert branch["logprobs"][:length] == parent["logprobs"][:length]
        assert len(branch["completion_token_ids"]) == len(branch["logprobs"]) > length
    assert len({tuple(branch["completion_token_ids"]) for branch in branches}) > len(parents)


def test_logprobs_of_new_tokens_are_those_of_a_plain_forward_pass(branches, make_engine):
    model = make_engine(1, "float64")._model
    for branch in branches:
        prompt, completion = branch["prompt_token_ids"], branch["completion_token_ids"]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        plain = torch.log_softmax(logits / branch["temperature"], -1)
        plain = plain.gather(1, torch.tensor(completion)[:, None])[:, 0]
        told = torch.tensor(branch["logprobs"], dtype=torch.float64)
        # what is stored is rounded to float32
        assert torch.allclose(told, plain, rtol=1e-7, atol=1e-9)


def test_groups_are_whole_in_the_order_of_the_pivots_with_derived_ids(pivots, branches, tiny):
    assert [b["pivot_id"] for b in branches] == [p["pivot_id"] for p in pivots for _ in range(4)]
    assert [b["sample_index"] for b in branches] == [0, 1, 2, 3] * len(pivots)
    for branch in branches:
        group = stable_hash(branch["parent_rollout_id"], branch["prefix_len"], tiny.id, 0)
        assert branch["group_id"] == branch["pivot_id"] == group
        assert branch["rollout_id"] == rollout_id(group, branch["sample_index"])
        assert branch["seed"] == sample_seed(0, 0, group, branch["sample_index"])
        assert (branch["stream"], branch["round"], branch["group_size"]) == ("branch", 0, 4)
        assert branch["kind"]  # what came with the problem goes on
        check_columns(branch)


def test_what_was_the_parents_alone_does_not_stay(pivots, make_engine, tokens, tiny):
    (branch,) = branched([pivots[3].extended(round=2, stop=["."])], make_engine(), tokens, tiny, samples=1)
    assert not {"verdict", "reward", "extracted", "verifier_detail", "shaping", "stop"} & set(branch)
    assert branch["round"] == 0
    # the history of find-pivots reads these
    assert (branch["depth"], branch["recoverability"], branch["utility"]) == (0.5, 0.25, 0.0625)


def test_text_is_that_of_all_ids_without_the_end_token(branches, tokens, make_engine):
    engine = make_engine()
    assert {branch["finish_reason"] for branch in branches} == {"stop"}
    for branch in branches:
        assert branch["completion_token_ids"][-1] in engine.end_ids
        assert branch["completion"] == tokens.text(branch["completion_token_ids"][:-1])


def test_ids_do_not_depend_on_batch_size_or_order_in_float64(pivots, branches, make_engine, tokens, tiny):
    found = branched(pivots[::-1], make_engine(5, "float64"), tokens, tiny)
    ids = {branch["rollout_id"]: branch["completion_token_ids"] for branch in branches}
    assert {branch["rollout_id"]: branch["completion_token_ids"] for branch in found} == ids


def test_a_branch_of_the_root_is_a_fresh_rollout_of_the_prompt(parents, branches, make_engine):
    root = [branch for branch in branches if branch["prefix_len"] == 0]
    prompt = tuple(parents[0]["prompt_token_ids"])
    fresh = make_engine(64, "float64").sample([Request(prompt, b["seed"], 200, None) for b in root], Sampling(0.9))
    for branch, (_, sample) in zip(root, fresh, strict=True):
        assert branch["completion_token_ids"] == sample.token_ids
        assert branch["logprobs"] == pytest.approx(sample.logprobs, abs=1e-9)


def test_greedy_branches_go_on_as_their_greedy_parent_did(make_engine, tokens, tiny):
    engine = make_engine(64, "float64")
    problem = Record(next(iter(generate("deep"))), "p.jsonl:1")
    plan = RolloutPlan(tiny, 1, 200, 0, Sampling(0.0))
    (parent,) = rollout([problem], engine, plan, tokens.prompt_ids, tokens.text)
    everywhere = [pivot(parent, length) for length in range(0, len(parent["completion_token_ids"]), 7)]
    for branch in branched(everywhere, engine, tokens, tiny, samples=1, sampling=Sampling(0.0)):
        assert branch["completion_token_ids"] == parent["completion_token_ids"]
        assert branch["logprobs"] == pytest.approx(parent["logprobs"], abs=1e-9)
        assert branch["completion"] == parent["completion"]


def test_the_run_seed_moves_the_new_tokens(pivots, branches, make_engine, tokens, tiny):
    found = branched(pivots, make_engine(64, "float64"), tokens, tiny, seed=1)
    assert [b["group_id"] for b in found] == [b["group_id"] for b in branches]
    assert [b["completion_token_ids"] for b in found] != [b["completion_token_ids"] for b in branches]


def test_another_policy_makes_pivots_of_its_own(pivots, make_engine, tokens, tiny):
    later = Policy("later", tiny.path, "f" * 20, 3, tiny.vocabulary)
    (branch,) = branched(pivots[3:4], make_engine(), tokens, later, samples=1)
    assert branch["pivot_id"] == stable_hash(pivots[3]["rollout_id"], pivots[3]["prefix_len"], later.id, 3)
    assert branch["group_id"] == branch["pivot_id"] != pivots[3]["pivot_id"]
    assert (branch["policy_id"], branch["policy_step"], branch["model"]) == (later.id, 3, "later")


@pytest.mark.parametrize("left", [1, 2, 5])
def test_a_branch_has_the_budget_that_its_parent_had_left(parents, make_engine, tokens, tiny, left):
    (branch,) = branched([pivot(parents[3], 20, max_tokens=20 + left)], make_engine(), tokens, tiny, samples=1)
    assert len(branch["completion_token_ids"]) == branch["max_tokens"] == 20 + left
    assert branch["finish_reason"] == "length"
    assert branch["completion"] == tokens.text(branch["completion_token_ids"])


def test_a_prefix_that_fills_the_context_makes_error_records_and_the_rest_goes_on(
    pivots, parents, make_engine, tokens, tiny
):
    engine = make_engine()
    room = engine.context - len(parents[0]["prompt_token_ids"])
    long = parents[0].extended(completion_token_ids=[36] * room, logprobs=[-1.0] * room, max_tokens=10**6)
    full, nearly = pivot(long, room), pivot(long, room - 2)
    found = branched([pivots[2], full, nearly, full.extended(rollout_id="last")], engine, tokens, tiny, samples=2)
    failed = [branch for branch in found if branch["finish_reason"] == "error"]
    assert [found.index(branch) for branch in failed] == [2, 3, 6, 7]
    for branch in failed:
        assert branch["completion_token_ids"] == [36] * room  # the prefix stays, nothing is new
        assert branch["logprobs"] == [-1.0] * room
    for branch in found[4:6]:
        assert room - 2 < len(branch["completion_token_ids"]) <= room


def test_a_stop_text_may_begin_in_the_prefix(parents, make_engine, tokens, tiny):
    engine, parent = make_engine(64, "float64"), parents[3]
    (plain,) = branched([pivot(parent, 20)], engine, tokens, tiny, samples=1)
    stop = tokens.text(plain["completion_token_ids"][18:21])  # two inherited tokens and the first new one
    (branch,) = branched([pivot(parent, 20)], engine, tokens, tiny, samples=1, sampling=Sampling(0.9, stop=(stop,)))
    assert branch["completion_token_ids"] == plain["completion_token_ids"][:21]
    assert branch["finish_reason"] == "stop"
    assert branch["completion"].endswith(stop)


def test_a_prefix_is_computed_once_for_its_branches(pivots, make_engine, tokens, tiny):
    """Counts what goes through the real model: in its first pass over a batch, and one by one after that."""
    engine = make_engine(24)  # four pivots of six branches
    passes = []

    def spy(module, arguments, given):
        fed = given["attention_mask"][:, -given["input_ids"].shape[1] :]  # 0 where a row is padded
        passes.append((given["input_ids"].shape[1], int(fed.sum())))

    engine._model.register_forward_pre_hook(spy, with_kwargs=True)
    found = branched(pivots, engine, tokens, tiny, samples=6)
    computed = sum(count for width, count in passes if width > 1)
    assert computed == sum(len(p["prompt_token_ids"]) + p["prefix_len"] for p in pivots)
    # each new token but the last of a branch is fed once
    new = sum(len(branch["completion_token_ids"]) - branch["prefix_len"] - 1 for branch in found)
    assert sum(count for width, count in passes if width == 1) == new


POLICY = Policy("small", None, "a" * 20, 0, 48)
GOOD = {
    "problem_id": "p",
    "prompt": "Start",
    "rollout_id": "r",
    "policy_id": POLICY.id,
    "stream": "main",
    "prompt_token_ids": [1, 2, 3],
    "completion_token_ids": [4, 5, 6, 7],
    "logprobs": [-0.5, -0.25, -1, -2],
    "finish_reason": "stop",
    "tokens_exact": True,
    "temperature": 1.0,
    "max_tokens": 10,
    "prefix_len": 2,
}
BAD = {
    "no pivot": ({"prefix_len": None}, "prefix_len is missing; resample reads pivots: run rlvr find-pivots"),
    "no rollout": ({"logprobs": None}, "logprobs is missing; resample reads pivots"),
    "no number": ({"prefix_len": "2"}, 'prefix_len is "2", expected an integer'),
    "a branch": ({"stream": "branch"}, "stream is branch; choose pivots in main rollouts"),
    "text only": ({"tokens_exact": False}, "tokens_exact is false; sample with an engine that returns token ids"),
    "torn": ({"logprobs": [-1.0]}, "4 completion_token_ids and 1 logprobs; sample again"),
    "no prompt": ({"prompt_token_ids": []}, "prompt_token_ids is empty"),
    "another tokenizer": ({"prompt_token_ids": [1, 48]}, r"token id 48 is beyond the vocabulary of small \(48\)"),
    "before the root": ({"prefix_len": -1}, "prefix_len is -1, expected 0 to 4"),
    "beyond the completion": ({"prefix_len": 5}, "prefix_len is 5, expected 0 to 4"),
    "behind the end": ({"prefix_len": 4}, "prefix_len is 4, behind the token that ended the completion"),
    "no budget": ({"prefix_len": 2, "max_tokens": 2}, "prefix_len is 2 and max_tokens 2: no token is left to sample"),
}


@pytest.mark.parametrize(("change", "told"), BAD.values(), ids=BAD)
def test_a_wrong_pivot_names_file_line_column_and_remedy(change, told):
    check_pivot(Record(GOOD, "pivots.jsonl:7"), POLICY)
    columns = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(RecordError, match="^pivots.jsonl:7: " + told):
        check_pivot(Record(columns, "pivots.jsonl:7"), POLICY)


@given(tokens=st.integers(0, 6), prefix=st.integers(-2, 8), budget=st.integers(0, 8), stopped=st.booleans())
def test_a_prefix_is_good_exactly_where_a_token_can_follow_it(tokens, prefix, budget, stopped):
    record = Record(GOOD).extended(
        completion_token_ids=[4] * tokens,
        logprobs=[-1.0] * tokens,
        finish_reason="stop" if stopped else "length",
        max_tokens=budget,
        prefix_len=prefix,
    )
    places = range(tokens + (not stopped))  # behind the last token only where nothing ended the completion
    good = prefix in places and prefix + 1 <= budget
    try:
        check_pivot(record, POLICY)
    except RecordError:
        assert not good
    else:
        assert good
