"""The stage as a function: groups, ids, seeds, and prompts that do not fit."""

import pytest

from rlvr_cli.engines.engine import Sampling
from rlvr_cli.records import Record, check_columns, group_id, rollout_id, sample_seed
from rlvr_cli.stages.rollout import Plan, rollout
from rlvr_cli.tiny.problems import generate


@pytest.fixture(scope="module")
def problems():
    return [Record(record, f"p.jsonl:{n}") for n, record in enumerate(list(generate("eval"))[::40], 1)]


def sampled(problems, engine, tokens, tiny, samples=3, max_tokens=40, seed=0, stop=()):
    plan = Plan(tiny, samples, max_tokens, seed, Sampling(stop=stop))
    return list(rollout(problems, engine, plan, tokens.prompt_ids, tokens.text))


def test_groups_are_whole_in_the_order_of_the_problems_with_derived_ids(problems, make_engine, tokens, tiny):
    found = sampled(problems, make_engine(7), tokens, tiny)
    assert [r["problem_id"] for r in found] == [p["problem_id"] for p in problems for _ in range(3)]
    assert [r["sample_index"] for r in found] == [0, 1, 2] * len(problems)
    for record in found:
        group = group_id(tiny.id, 0, 0, record["problem_id"])
        assert record["group_id"] == group
        assert record["rollout_id"] == rollout_id(group, record["sample_index"])
        assert record["seed"] == sample_seed(0, 0, group, record["sample_index"])
        assert record["stream"] == "main"
        assert record["kind"]  # what came with the problem goes on


def test_text_is_that_of_the_ids_without_the_end_token(problems, make_engine, tokens, tiny):
    engine = make_engine()
    found = sampled(problems, engine, tokens, tiny, max_tokens=200)
    assert {record["finish_reason"] for record in found} == {"stop"}
    for record in found:
        assert record["completion_token_ids"][-1] in engine.end_ids
        assert record["completion"] == tokens.text(record["completion_token_ids"][:-1])
        assert len(record["logprobs"]) == len(record["completion_token_ids"])
    assert tokens.text(found[0]["prompt_token_ids"]) == "<bos> " + found[0]["prompt"]


def test_the_run_seed_moves_the_samples(problems, make_engine, tokens, tiny):
    first, second = (
        [r["completion_token_ids"] for r in sampled(problems, make_engine(), tokens, tiny, seed=seed)]
        for seed in (0, 1)
    )
    assert first != second


def test_an_overlong_prompt_becomes_error_records_and_the_rest_goes_on(problems, make_engine, tokens, tiny):
    engine = make_engine()
    long = Record({"problem_id": "long", "prompt": "Start 1 2 . " * 200}, "p.jsonl:9")
    found = sampled([problems[0], long, problems[1], long.extended(problem_id="last")], engine, tokens, tiny, samples=2)
    assert [r["problem_id"] for r in found][2:4] == ["long", "long"]
    assert [r["problem_id"] for r in found][6:] == ["last", "last"]
    failed = [r for r in found if r["finish_reason"] == "error"]
    assert [r["problem_id"] for r in failed] == ["long", "long", "last", "last"]
    assert all(r["completion_token_ids"] == [] and r["completion"] == "" for r in failed)


def test_a_prompt_that_leaves_little_room_is_cut_at_the_context(make_engine, tokens, tiny):
    engine = make_engine()
    nearly = Record({"problem_id": "n", "prompt": " ".join(["Start"] * (engine.context - 4))}, "p.jsonl:1")
    (record,) = sampled([nearly], engine, tokens, tiny, samples=1, max_tokens=100)
    assert len(record["prompt_token_ids"]) + len(record["completion_token_ids"]) <= engine.context


def test_stop_texts_are_told_where_there_are_some(problems, make_engine, tokens, tiny):
    (record,) = sampled(problems[:1], make_engine(), tokens, tiny, samples=1, stop=(" .", "zz 9"))
    assert record["stop"] == [" .", "zz 9"]
    check_columns(record)
    (record,) = sampled(problems[:1], make_engine(), tokens, tiny, samples=1)
    assert "stop" not in record


def test_stale_columns_of_an_earlier_sampling_do_not_stay(problems, make_engine, tokens, tiny):
    old = problems[0].extended(verdict="correct", reward=1.0, depth=0.5, stop=["."])
    (record,) = sampled([old], make_engine(), tokens, tiny, samples=1)
    assert not {"verdict", "reward", "depth", "stop"} & set(record)
