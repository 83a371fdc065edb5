"""Pivots of failed rollouts: which records come out, and that nothing but ids and the seed decides."""

import random
from collections import Counter

import pytest
from scipy.stats import chisquare

from rlvr_cli.errors import RecordError
from rlvr_cli.exploration.pivots import Worth
from rlvr_cli.exploration.recoverability import Logistic
from rlvr_cli.exploration.segments import Segments
from rlvr_cli.records import Record, stable_hash
from rlvr_cli.stages.find_pivots import COUNTED, Checker, Plan, find_pivots


def rollout(group="g", index=0, reward=0.0, length=120, size=8, **columns):
    """A scored rollout; a reward of None could not be judged."""
    judged = {"verdict": "error"} if reward is None else {"verdict": "wrong", "reward": reward}
    return Record(
        {
            "problem_id": f"problem of {group}",
            "group_id": group,
            "rollout_id": f"{group}-{index}",
            "group_size": size,
            "policy_id": "policy",
            "policy_step": 3,
            "prompt_token_ids": [1, 2],
            "completion_token_ids": [5] * length,
            "logprobs": [-0.5] * length,
            "completion": "5 " * length,
            "finish_reason": "length",
            "max_tokens": 512,
            **judged,
            **columns,
        },
        f"scored.jsonl:{index + 1}",
    )


def plan(segments=Segments("tokens", 50), worth=Worth(), **options):  # noqa: B008 (both are frozen)
    return Plan(segments, worth, **options)


def ids(records):
    return [record["pivot_id"] for record in records]


def test_a_pivot_is_the_failed_rollout_with_its_state():
    failed = rollout(kind="deep")
    [pivot] = find_pivots([failed], plan(worth=Worth(chance=Logistic(-4.0, 2.0))))
    assert {name: pivot[name] for name in failed} == failed
    x = (pivot["prefix_len"] // 50 + 1) / 4
    chance = Logistic(-4.0, 2.0)(x)
    assert {name: value for name, value in pivot.items() if name not in failed} == {
        "pivot_id": stable_hash("g-0", pivot["prefix_len"], "policy", 3),
        "prefix_len": pivot["prefix_len"],
        "depth": x,
        "recoverability": chance,
        "utility": pytest.approx(chance * x**2),
    }
    assert pivot.where == failed.where


def test_only_judged_failures_of_the_main_stream_have_pivots():
    records = [
        rollout(index=0),
        rollout(index=1, reward=1.0),
        rollout(index=2, reward=None),
        rollout(index=3, stream="branch"),
        rollout(index=4, reward=-1.0, stream="main"),
        rollout(index=5, reward=0.5),
        rollout(index=6, length=0),
    ]
    counts = Counter()
    assert [r["rollout_id"] for r in find_pivots(records, plan(), counts)] == ["g-0", "g-4"]
    assert {name: counts[name] for name in COUNTED} == {
        "rollouts": 6,
        "branches": 1,
        "unjudged": 1,
        "failures": 3,
        "candidates": 6,
        "failures_without_candidate": 1,
        "pivots": 2,
        "groups_unfinished": 1,
        "groups_oversized": 0,
    }
    raised = [r["rollout_id"] for r in find_pivots(records, plan(threshold=0.5))]
    assert raised == ["g-0", "g-4", "g-5"]


def test_pivots_are_drawn_in_the_right_proportions():
    """The seeds are derived from the rollouts' ids: over 20,000 of them the draws follow U / ΣU."""
    chance = Logistic(-6.0, 4.0)
    records = (rollout(group=str(number), length=210) for number in range(20_000))
    observed = Counter(record["prefix_len"] for record in find_pivots(records, plan(worth=Worth(chance=chance))))
    utilities = {50 * j: chance((j + 1) / 6) * ((j + 1) / 6) ** 2 for j in range(5)}
    expected = [20_000 * utility / sum(utilities.values()) for utility in utilities.values()]
    assert chisquare([observed[prefix_len] for prefix_len in utilities], expected).pvalue > 0.001


def test_several_pivots_of_a_rollout_are_different_states():
    pivots = list(find_pivots([rollout()], plan(pivots_per_rollout=2)))
    assert len({pivot["prefix_len"] for pivot in pivots}) == 2
    assert ids(pivots)[:1] == ids(find_pivots([rollout()], plan()))
    assert len(list(find_pivots([rollout()], plan(pivots_per_rollout=99)))) == 3  # as many as there are


@pytest.mark.parametrize("per_group", [0, 2])
def test_neither_order_nor_shards_change_what_is_drawn(per_group):
    records = [rollout(group, index, reward=float(index == 3)) for group in "abcdef" for index in range(8)]
    whole = ids(find_pivots(records, plan(per_group=per_group)))
    assert len(whole) == 6 * (per_group or 7)
    random.Random(1).shuffle(records)
    assert sorted(ids(find_pivots(records, plan(per_group=per_group)))) == sorted(whole)
    parts = [[r for r in records if r["group_id"] in part] for part in ("abc", "def")]
    assert sorted(pivot for part in parts for pivot in ids(find_pivots(part, plan(per_group=per_group)))) == sorted(
        whole
    )
    assert sorted(ids(find_pivots(records, plan(per_group=per_group, seed=1)))) != sorted(whole)


def test_a_groups_budget_is_spent_on_failures_that_have_a_candidate():
    records = [rollout(index=index, length=120 if index in (2, 5) else 0) for index in range(8)]
    assert [r["rollout_id"] for r in find_pivots(records, plan(per_group=2))] == ["g-2", "g-5"]
    assert len(list(find_pivots(records, plan(per_group=1, pivots_per_rollout=2)))) == 2  # failures are counted


def test_every_failure_of_a_group_gets_its_turn():
    chosen = Counter(
        record["rollout_id"]
        for seed in range(200)
        for record in find_pivots([rollout(index=index) for index in range(8)], plan(per_group=1, seed=seed))
    )
    assert chisquare([chosen[f"g-{index}"] for index in range(8)]).pvalue > 0.001


def test_a_groups_pivots_come_as_soon_as_it_is_whole():
    read = 0

    def reading():
        nonlocal read
        for group in "ab":
            for index in range(8):
                read += 1
                yield rollout(group, index)

    pivots = find_pivots(reading(), plan(per_group=1))
    assert (next(pivots)["group_id"], read) == ("a", 8)
    pivots = find_pivots(reading(), plan())
    read = 0
    assert (next(pivots)["group_id"], read) == ("a", 1)


@pytest.mark.parametrize("per_group", [0, 1])
def test_groups_that_are_not_whole_or_too_large_are_counted_apart(per_group):
    records = [rollout("a", 0), rollout("a", 1), rollout("b", 0, size=1), rollout("c", 0, group_size=0)]
    records += [rollout("d", index, size=3) for index in range(7)]  # twice as many as planned, and one
    counts = Counter()
    pivots = list(find_pivots(records, plan(per_group=per_group), counts))
    assert (counts["groups_unfinished"], counts["groups_oversized"]) == (1, 1)
    assert Counter(pivot["group_id"] for pivot in pivots) == (
        {"a": 1, "b": 1, "c": 1, "d": 1} if per_group else {"a": 2, "b": 1, "c": 1, "d": 7}
    )
    if per_group:  # what came after the first three came too late
        assert {pivot["rollout_id"] for pivot in pivots} & {f"d-{index}" for index in range(7)} <= {"d-0", "d-1", "d-2"}


def test_a_policy_that_nobody_can_name_has_pivots_too():
    """A server cannot prove its weights: null is absent once it was read."""
    unknown = rollout()
    del unknown["policy_id"]
    Checker(plan()).check(unknown)
    [pivot] = find_pivots([unknown], plan())
    assert pivot["pivot_id"] == stable_hash("g-0", pivot["prefix_len"], None, 3)
    assert "policy_id" not in pivot


def test_a_check_does_not_cut_what_the_stage_cuts_again():
    """Cutting decodes every token, some of them twice; a check of the text decodes it as a whole."""
    calls = 0

    def decode(ids):
        nonlocal calls
        calls += 1
        return "".join(" ." if index % 2 else " word" for index in ids)

    words = plan(Segments("sentences", decode=decode))
    record = rollout(completion_token_ids=list(range(40)), logprobs=[-1.0] * 40, completion=decode(list(range(40))))
    calls = 0
    Checker(words).check(record)
    assert 1 <= calls <= 2
    assert len(words.candidates(record)) == 20
    assert calls > 40


def test_scores_of_a_column_decide():
    records = [rollout(group=str(number), prm=[0.0, 1.0, 0.0]) for number in range(20)]
    pivots = list(find_pivots(records, plan(worth=Worth(score_column="prm"))))
    assert {(pivot["prefix_len"], pivot["utility"]) for pivot in pivots} == {(100, 1.0)}
    assert pivots[0]["prm"] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        *(
            ({name: None}, f"{name} is missing; find-pivots reads scored rollouts: rlvr rollout, then rlvr verify")
            for name in (
                "rollout_id",
                "group_id",
                "policy_step",
                "logprobs",
                "max_tokens",
                "finish_reason",
            )
        ),
        ({"completion_token_ids": None}, "completion_token_ids is missing"),
        ({"prompt_token_ids": None}, "prompt_token_ids is missing"),
        ({"verdict": None}, "verdict is missing; run rlvr verify on it first"),
        ({"reward": None}, "reward is missing; run rlvr verify on it first"),
        ({"reward": "no"}, 'reward is "no", expected a number'),
        ({"tokens_exact": False}, "tokens_exact is false; sample with an engine that returns token ids"),
        ({"logprobs": [-0.5]}, "120 completion_token_ids and 1 logprobs; sample again"),
    ],
)
def test_what_is_no_scored_rollout_is_refused(columns, said):
    record = Record({k: v for k, v in {**rollout(), **columns}.items() if v is not None}, "scored.jsonl:1")
    with pytest.raises(RecordError) as caught:
        Checker(plan()).check(record)
    assert str(caught.value).startswith(f"scored.jsonl:1: {said}")


def test_branches_and_unjudged_rollouts_are_no_errors():
    checker = Checker(plan())
    checker.check(Record({"stream": "branch"}))
    checker.check(rollout(index=0, reward=None))
    checker.check(rollout(index=1, reward=1.0))


@pytest.mark.parametrize("reward", [0.0, 1.0, None])
def test_a_rollout_that_is_there_twice_is_refused(reward):
    """One that did not fail too: its file was named twice, and its group counts double."""
    checker = Checker(plan())
    checker.check(rollout(index=0))
    checker.check(rollout(index=1, reward=reward))
    with pytest.raises(RecordError, match=r"^scored\.jsonl:2: rollout_id g-1 stands at scored\.jsonl:2 already"):
        checker.check(rollout(index=1, reward=reward))


def test_a_failure_that_cannot_be_cut_or_weighed_is_a_bad_record():
    with pytest.raises(RecordError, match="prm is missing"):
        Checker(plan(worth=Worth(score_column="prm"))).check(rollout())
    Checker(plan(worth=Worth(score_column="prm"))).check(rollout(reward=1.0))
    Checker(plan(worth=Worth(score_column="prm"))).check(rollout(length=0))  # there is nothing to score
    words = Segments("sentences", decode=lambda ids: "another")
    with pytest.raises(RecordError, match="completion is not the text of completion_token_ids"):
        Checker(plan(words)).check(rollout())
