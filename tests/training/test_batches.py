"""From records to sequences and mini-batches."""

import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record
from rlvr_cli.training.batches import Checker, Sequence, check_scored, form_step, micro_batches, mini_batches

POLICY = Policy("p", None, "w0", 0, 44)


def scored(group: str, index: int, reward: float | None, **columns) -> Record:
    record = Record(
        {
            "group_id": group,
            "rollout_id": f"{group}-{index}",
            "group_size": 2,
            "policy_id": "w0",
            "prompt_token_ids": [1, 2],
            "completion_token_ids": [3, 4, 5],
            "logprobs": [-1.0, -1.0, -1.0],
            "finish_reason": "stop",
            "tokens_exact": True,
            "temperature": 1.0,
            "max_tokens": 8,
            "verdict": "error" if reward is None else "correct" if reward else "wrong",
        },
        f"scored.jsonl:{index + 1}",
    )
    if reward is not None:
        record["reward"] = reward
    return Record({**record, **columns}, record.where)


def branch(pivot: str, index: int, reward: float | None, **columns) -> Record:
    """A branch that inherited the first of its three tokens."""
    return scored(pivot, index, reward, **{"stream": "branch", "pivot_id": pivot, "prefix_len": 1, **columns})


def test_groups_without_a_signal_are_dropped_and_counted():
    records = [
        *(scored("mixed", i, reward) for i, reward in enumerate([1.0, 0.0])),
        *(scored("wrong", i, 0.0) for i in range(2)),
        *(scored("right", i, 1.0) for i in range(2)),
        *(scored("partial", i, 0.3) for i in range(2)),
        *(scored("judge", i, reward) for i, reward in enumerate([None, 1.0])),
    ]
    step = form_step(records, "dr-grpo", 1e-6)["main"]
    assert [(s.id, s.advantage) for s in step.sequences] == [("mixed-0", 0.5), ("mixed-1", -0.5)]
    assert step.groups == {"mixed": 1, "all_wrong": 1, "all_right": 1, "constant": 1, "unjudged": 1}
    assert step.unjudged == 1
    assert step.incomplete == 0


def test_shaping_moves_advantages_but_never_makes_a_signal():
    wrong = [scored("wrong", i, 0.0, shaping=0.1 * i) for i in range(2)]
    mixed = [scored("mixed", i, float(i), shaping=-0.5 * i) for i in range(2)]
    step = form_step([*wrong, *mixed], "dr-grpo", 1e-6)["main"]
    assert [(s.id, s.advantage) for s in step.sequences] == [("mixed-0", -0.25), ("mixed-1", 0.25)]


def test_what_could_not_be_judged_is_no_part_of_the_baseline():
    group = [scored("g", i, reward, group_size=3) for i, reward in enumerate([1.0, None, 0.0])]
    step = form_step(group, "dr-grpo", 1e-6)["main"]
    assert [s.advantage for s in step.sequences] == [0.5, -0.5]


def test_incomplete_groups_are_counted():
    assert form_step([scored("g", 0, 1.0)], "dr-grpo", 1e-6)["main"].incomplete == 1


@pytest.mark.parametrize("again", ["other.jsonl:1", "scored.jsonl:1"])  # another file, or the same file named twice
def test_a_rollout_that_is_there_twice_is_refused(again):
    checker = Checker(POLICY)
    checker.check(scored("g", 0, 1.0))
    checker.check(branch("p", 0, 1.0))
    with pytest.raises(RecordError, match=rf"{again}: rollout_id g-0 stands at scored\.jsonl:1 already; is a file"):
        checker.check(Record(scored("g", 0, 1.0), again))


def test_the_checker_takes_other_policies_when_it_is_told_to():
    other = scored("g", 0, 1.0, policy_id="w1")
    with pytest.raises(RecordError, match="or --off-policy"):
        Checker(POLICY).check(other)
    Checker(POLICY, off_policy=True).check(other)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"reward": "yes"}, r'scored\.jsonl:1: reward is "yes", expected a number; .*rlvr verify'),
        ({"verdict": None}, r"verdict is missing; run rlvr verify on it first"),
        ({"reward": None}, r"reward is missing; run rlvr verify on it first"),
        ({"tokens_exact": False}, r"tokens_exact is false"),
        ({"logprobs": [-1.0]}, r"3 completion_token_ids and 1 logprobs"),
        ({"temperature": 0.0}, r"temperature is 0"),
        ({"top_p": 0.9}, r"cut the support"),
        ({"top_k": 5}, r"cut the support"),
        ({"min_p": 0.1}, r"cut the support"),
        ({"policy_id": None}, r"policy_id is missing"),
        ({"policy_id": "w1"}, r"sampled by policy w1, but p is w0; .*--off-policy"),
        ({"stream": "draft"}, r'stream is "draft", expected one of main, branch'),
        ({"prefix_len": 0}, r"prefix_len stands on a main rollout: a pivot; run rlvr resample on it first"),
        ({"pivot_id": "g"}, r"pivot_id stands on a main rollout: a pivot; run rlvr resample on it first"),
        ({"prompt_token_ids": []}, r"prompt_token_ids is empty"),
        ({"completion_token_ids": [3, 44, 5]}, r"token id 44 is beyond the vocabulary of p \(44\)"),
        ({"completion_token_ids": [1.5]}, r"completion_token_ids is \[1\.5\], expected a list of token ids"),
        ({"group_id": None}, r"group_id is missing"),
    ],
)
def test_records_that_cannot_be_trained_on_are_refused_with_the_way_out(columns, message):
    record = scored("g", 0, 1.0)
    for name, value in columns.items():
        if value is None:
            del record[name]
        else:
            record[name] = value
    with pytest.raises(RecordError, match=message):
        check_scored(POLICY, False, record)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pivot_id": None}, r"scored\.jsonl:1: pivot_id is missing on a branch; sample branches with rlvr resample"),
        ({"prefix_len": None}, r"prefix_len is missing on a branch"),
        ({"prefix_len": 4}, r"prefix_len is 4, expected 0 to the 3 completion_token_ids"),
        ({"prefix_len": -1}, r"prefix_len is -1, expected 0 to the 3"),
        ({"prefix_len": 1.5}, r"prefix_len is 1\.5, expected an integer"),
        ({"pivot_id": "q"}, r"group_id is p and pivot_id q, expected the same"),
        ({"policy_id": "w1"}, r"sampled by policy w1, but p is w0; .*--off-policy"),
        ({"reward": None}, r"reward is missing; run rlvr verify on it first"),
    ],
)
def test_branches_that_cannot_be_trained_on_are_refused(columns, message):
    record = branch("p", 0, 1.0)
    check_scored(POLICY, False, record)
    for name, value in columns.items():
        if value is None:
            del record[name]
        else:
            record[name] = value
    with pytest.raises(RecordError, match=message):
        check_scored(POLICY, False, record)


def test_branches_are_grouped_by_pivot_and_keep_what_they_sampled_themselves():
    """Three branches of one pivot, one of which had no room: rlvr verify gave it no reward, no baseline has it."""
    records = [branch("p", i, reward) for i, reward in enumerate([1.0, 0.0])]
    records.append(branch("p", 2, None, prefix_len=3, finish_reason="error"))
    records += [scored("p", i, float(i), rollout_id=f"m-{i}") for i in range(2)]  # an id of a main group, by chance
    for record in records:
        check_scored(POLICY, False, record)
    step = form_step(records, "dr-grpo", 1e-6)
    found = [(s.id, s.context, s.completion, s.logprobs) for s in step["branch"].sequences]
    assert found == [(f"p-{i}", (1, 2, 3), (4, 5), (-1.0, -1.0)) for i in range(2)]
    assert [s.advantage for s in step["branch"].sequences] == [0.5, -0.5]
    assert step["branch"].unjudged == 1
    assert [(s.id, s.context, s.advantage) for s in step["main"].sequences] == [
        ("m-0", (1, 2), -0.5),
        ("m-1", (1, 2), 0.5),
    ]
    assert step["branch"].groups == step["main"].groups == {"mixed": 1}
    assert (step["branch"].rollouts, step["main"].rollouts) == (3, 2)


def test_a_judged_rollout_without_a_token_of_its_own_counts_in_the_baseline_alone():
    """No engine here makes one; a mean over its no tokens is none."""
    records = [branch("p", 0, 1.0), branch("p", 1, 0.0), branch("p", 2, 0.0, prefix_len=3)]
    sequences = form_step(records, "dr-grpo", 1e-6)["branch"].sequences
    assert [s.id for s in sequences] == ["p-0", "p-1"]
    assert [s.advantage for s in sequences] == pytest.approx([2 / 3, -1 / 3])


def test_branch_groups_are_classified_by_reward_alone_and_shaped_for_advantages():
    equal = [branch("equal", i, 0.0, shaping=0.5 * i) for i in range(2)]
    mixed = [branch("mixed", i, float(i), shaping=-0.5 * i) for i in range(2)]
    stream = form_step([*equal, *mixed], "dr-grpo", 1e-6)["branch"]
    assert [(s.id, s.advantage) for s in stream.sequences] == [("mixed-0", -0.25), ("mixed-1", 0.25)]
    assert stream.groups == {"all_wrong": 1, "mixed": 1}


def test_each_stream_has_its_own_account():
    records = [branch("p", 0, None), branch("p", 1, 0.0), branch("q", 0, 1.0), scored("g", 0, 0.5)]
    step = form_step(records, "dr-grpo", 1e-6)
    assert (step["branch"].unjudged, step["branch"].incomplete, step["branch"].reward_sum) == (1, 1, 1.0)
    assert (step["main"].unjudged, step["main"].incomplete, step["main"].reward_sum) == (0, 1, 0.5)


def test_off_policy_takes_records_of_other_policies():
    check_scored(POLICY, True, scored("g", 0, 1.0, policy_id="w1"))


def sequences(count: int) -> list[Sequence]:
    return [Sequence(f"s{i}", (1,) * (1 + i % 5), (2,) * (1 + i % 3), (), 0.0, 1.0, 8) for i in range(count)]


@pytest.mark.parametrize(("count", "size", "sizes"), [(300, 128, [150, 150]), (100, 128, [100]), (7, 0, [7])])
def test_mini_batches_are_nearly_equal(count, size, sizes):
    batches = mini_batches(sequences(count), size, 0, 0)
    assert [len(batch) for batch in batches] == sizes
    assert {s.id for batch in batches for s in batch} == {s.id for s in sequences(count)}


def test_mini_batches_depend_on_ids_and_seed_alone():
    some = sequences(40)
    assert mini_batches(some, 10, 0, 0) == mini_batches(some[::-1], 10, 0, 0)
    assert mini_batches(some, 10, 0, 0) != mini_batches(some, 10, 1, 0)
    assert mini_batches(some, 10, 0, 0) != mini_batches(some, 10, 0, 1)


def test_micro_batches_keep_the_budget_with_padding():
    parts = list(micro_batches(sequences(40), 20))
    assert sorted(s.id for part in parts for s in part) == sorted(s.id for s in sequences(40))
    assert all(max(s.tokens for s in part) * len(part) <= 20 for part in parts)
    assert all(len(part) == 1 for part in micro_batches(sequences(4), 1))


def test_a_budget_below_the_completion_is_refused():
    with pytest.raises(RecordError, match="max_tokens is -44 and the completion has 3 tokens"):
        check_scored(POLICY, False, scored("g", 0, 1.0, max_tokens=-44))
