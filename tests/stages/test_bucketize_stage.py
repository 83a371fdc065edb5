"""Scored rollouts become one row a problem, policy and sampling."""

from collections import Counter

import pytest

from rlvr_cli.difficulty.estimators import fit_beta, signal_posterior, signal_unbiased
from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.stages.bucketize import bucketize, check_scored


def scored(problem, rewards, policy="p0", step=0, start=0, planned=None, **columns):
    """The rollouts of one group; a reward of None is a rollout that the judge failed on."""
    for index, reward in enumerate(rewards, start):
        judged = {"verdict": "error"} if reward is None else {"verdict": "wrong", "reward": float(reward)}
        group = {"group_id": f"{policy}/{step}/{problem}", "sample_index": index}
        rollout = {"policy_id": policy, "policy_step": step, "group_size": planned or len(rewards), "temperature": 1.0}
        yield Record(
            {"problem_id": problem, "prompt": f"{problem}?", **rollout, **group, **judged, **columns}, f"f:{index + 1}"
        )


def test_a_row_tells_n_rates_groups_and_chances():
    [row] = bucketize(scored("a", [1, 0, 0, None, 1]))
    assert row["problem_id"] == "a"
    assert row["prompt"] == "a?"
    assert (row["n"], row["n_correct"], row["n_unjudged"], row["pass_rate"]) == (4, 2, 1, 0.5)
    assert row["pass_rate_low"] < 0.5 < row["pass_rate_high"]
    assert [name for name in row if name.startswith("pass_at")] == ["pass_at_1", "pass_at_2", "pass_at_4"]
    assert row["pass_at_2"] == pytest.approx(1 - 1 / 6)
    assert row["signal_exact_up_to"] == 4
    assert row["p_signal_4"] == signal_unbiased(4, 2, 4)
    assert row["p_signal_256"] == signal_posterior(4, 2, 256, *fit_beta([(4, 2)]))
    assert (row["policy_id"], row["policy_step"], row["temperature"]) == ("p0", 0, 1.0)
    assert (row["groups"], row["groups_mixed"]) == (1, 1)
    assert "reward" not in row
    assert "sample_index" not in row


def test_the_prior_is_fitted_to_all_problems_of_the_policy_and_to_no_other():
    records = [*scored("a", [1, 0]), *scored("b", [0, 0]), *scored("a", [1, 1], policy="p1", step=1)]
    rows = list(bucketize(records))
    assert rows[1]["p_signal_8"] == signal_posterior(2, 0, 8, *fit_beta([(2, 1), (2, 0)]))
    assert rows[2]["p_signal_8"] == signal_posterior(2, 2, 8, *fit_beta([(2, 2)]))


def test_rows_come_in_first_seen_order_one_a_problem_policy_and_sampling():
    records = [
        *scored("b", [1], planned=2),
        *scored("a", [0, 0]),
        *scored("b", [0], planned=2, start=1),
        *scored("b", [1, 1], policy="p1", step=1),
        *scored("b", [1, 1], temperature=0.5),
    ]
    rows = list(bucketize(records))
    assert [(row["problem_id"], row["policy_id"], row["temperature"], row["n"]) for row in rows] == [
        ("b", "p0", 1.0, 2),
        ("a", "p0", 1.0, 2),
        ("b", "p1", 1.0, 2),
        ("b", "p0", 0.5, 2),
    ]


def test_policies_without_an_id_are_told_apart_by_model_and_step():
    records = [record for step in (0, 1) for record in scored("a", [1, 0], step=step, model="server")]
    for record in records:
        del record["policy_id"]
    assert [row["policy_step"] for row in bucketize(records)] == [0, 1]


def test_a_problem_without_an_id_gets_its_content_hash():
    records = list(scored("a", [1, 0]))
    for record in records:
        del record["problem_id"]
    [row] = bucketize(records)
    assert row["n"] == 2
    assert len(row["problem_id"]) == 20


def test_branches_are_ignored_and_records_without_a_stream_are_main():
    counts = Counter()
    [row] = bucketize([*scored("a", [0, 0]), *scored("a", [1, 1], stream="branch", start=2)], counts=counts)
    assert (row["n"], row["n_correct"], counts["branches"]) == (2, 0, 2)


def test_a_rollout_that_is_read_twice_counts_once():
    counts = Counter()
    [row] = bucketize([*scored("a", [1, 0]), *scored("a", [1, 0])], counts=counts)
    assert (row["n"], counts["duplicates"]) == (2, 2)


def test_rollouts_without_group_ids_are_all_counted():
    records = [*scored("a", [1, 0]), *scored("a", [1, 0])]
    for record in records:
        del record["group_id"]
    [row] = bucketize(records)
    assert (row["n"], row["groups"], row["groups_mixed"]) == (4, 1, 1)


@pytest.mark.parametrize(
    ("rewards", "mixed", "wrong", "right"),
    [
        ([0, 0, 0, 1], 1, 0, 0),
        ([1, 0, 1, 0], 1, 0, 0),
        ([0, 0, 0], 0, 1, 0),
        ([1, 1, 1], 0, 0, 1),
        ([0.5, 0.5, 0.5], 0, 0, 0),
        ([1, None], 0, 0, 0),
    ],
)
def test_groups_are_classified_by_exact_rewards(rewards, mixed, wrong, right):
    [row] = bucketize(scored("a", rewards))
    assert (row["groups"], row["groups_mixed"], row["groups_all_wrong"], row["groups_all_right"]) == (
        1,
        mixed,
        wrong,
        right,
    )


def test_a_partial_reward_above_zero_is_a_success():
    [row] = bucketize(scored("a", [0.5, 0, -1, 1]))
    assert row["n_correct"] == 2


def test_groups_that_are_short_of_their_plan_are_counted():
    counts = Counter()
    records = [*scored("a", [1, 0], planned=4), *scored("b", [1, 0])]
    assert [row["groups_unfinished"] for row in bucketize(records, counts=counts)] == [1, 0]
    assert counts["groups_unfinished"] == 1


def test_buckets_come_from_the_base_run_and_a_problem_it_lacks_is_unknown():
    base = [*scored("a", [0, 0]), *scored("b", [0, 1]), *scored("c", [1, 1]), *scored("d", [None, None])]
    trained = [record for name in "abcde" for record in scored(name, [1, 1], policy="p9", step=9)]
    counts = Counter()
    rows = list(bucketize(trained, base=base, counts=counts))
    assert [row["bucket"] for row in rows] == ["hard", "medium", "easy", "unknown", "unknown"]
    assert counts["rows_unknown"] == 2


def test_without_a_base_the_policy_of_the_earliest_step_sets_the_buckets():
    late = [*scored("a", [1, 1], policy="p3", step=3), *scored("b", [0, 0], policy="p3", step=3)]
    early = [*scored("a", [0, 0]), *scored("b", [1, 1])]
    rows = list(bucketize([*late, *early]))
    assert [row["bucket"] for row in rows] == ["hard", "easy", "hard", "easy"]


def test_a_policy_without_a_step_sets_no_buckets_where_one_has_a_step():
    unstepped = list(scored("a", [1, 1], policy="other"))
    for record in unstepped:
        del record["policy_step"]
    assert [row["bucket"] for row in bucketize([*unstepped, *scored("a", [0, 0], step=3)])] == ["hard", "hard"]
    assert [row["bucket"] for row in bucketize(unstepped)] == ["easy"]


def test_an_unjudged_problem_has_counts_and_nothing_else():
    [row] = bucketize(scored("a", [None, None]))
    assert (row["n"], row["n_unjudged"], row["bucket"]) == (0, 2, "unknown")
    assert not [name for name in row if name.startswith(("pass_", "p_signal", "signal_"))]


def test_unknown_columns_of_the_problem_stay_and_those_of_a_rollout_go():
    records = list(scored("a", [1, 0], kind="deep", level=3, tags=["x"], select_reason="old"))
    records[0]["latency"], records[1]["latency"] = 0.1, 0.2
    [row] = bucketize(records)
    assert (row["kind"], row["level"]) == ("deep", 3)
    assert not {"latency", "tags", "select_reason"} & set(row)


def test_nothing_in_nothing_out():
    assert list(bucketize([])) == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"prompt": "?", "verdict": None}, "f.jsonl:7: reward is missing; run rlvr verify on it first"),
        (
            {"prompt": "?", "reward": "yes"},
            'f.jsonl:7: reward is "yes", expected a number; run rlvr verify on it first',
        ),
        ({"prompt": "?", "reward": 1, "temperature": "hot"}, 'f.jsonl:7: temperature is "hot", expected a number'),
        ({"reward": 1}, "f.jsonl:7: problem_id is missing, and so is the prompt; give rollouts of rlvr rollout"),
        (
            {"prompt": "?", "reward": 1, "sample_index": -1},
            "f.jsonl:7: sample_index is -1, expected 0 to 1048575",
        ),
    ],
)
def test_a_record_that_is_not_scored_is_refused_with_the_remedy(columns, message):
    with pytest.raises(RecordError) as refused:
        check_scored(Record(columns, "f.jsonl:7"))
    assert str(refused.value) == message


@pytest.mark.parametrize("columns", [{"reward": 1}, {"verdict": "error"}, {"finish_reason": "error"}])
def test_a_scored_record_passes(columns):
    check_scored(Record({"problem_id": "a", **columns}))
