"""Which problems the batch of a step holds, and why."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.stages.select import check_stats, select


def problems(*names):
    return [Record({"problem_id": name, "prompt": f"{name}?"}, f"f.jsonl:{i}") for i, name in enumerate(names, 1)]


def stats(problem, c, n=8, step=0, **columns):
    return Record({"problem_id": problem, "n": n, "n_correct": c, "policy_step": step, **columns})


def uniform(count, step, batch, seed=0):
    picked = select(problems(*map(str, range(count))), step=step, batch=batch, method="uniform", seed=seed)
    return [(record["problem_id"], record["select_reason"]) for record in picked]


def frontier(names, rows, batch, step=1, seed=0):
    picked = select(problems(*names), step=step, batch=batch, method="frontier", seed=seed, stats=rows)
    return [(record["problem_id"], record["select_reason"]) for record in picked]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5), st.integers(0, 3))
def test_uniform_is_without_replacement_an_epoch_at_a_time(count, batch, steps, seed):
    batch = min(batch, count)
    drawn = [uniform(count, step, batch, seed) for step in range(steps)]
    for group in drawn:
        assert len({name for name, _ in group}) == batch  # also where the batch crosses the border of two epochs
    names = [name for group in drawn for name, _ in group]
    for epoch in range(len(names) // count):
        assert len(set(names[epoch * count : (epoch + 1) * count])) == count
    assert [reason for group in drawn for _, reason in group] == [
        f"uniform: epoch {place // count}" for place in range(len(names))
    ]


def test_uniform_differs_by_epoch_and_by_seed():
    first = [uniform(20, 0, 20, seed)[:] for seed in (0, 1)]
    assert [name for name, _ in first[0]] != [name for name, _ in first[1]]
    assert [name for name, _ in first[0]] != [name for name, _ in uniform(20, 1, 20)]


def test_uniform_favours_no_problem_at_a_border():
    """Over many seeds each problem is equally often the first of the second epoch."""
    firsts = Counter(uniform(5, 1, 3, seed)[2][0] for seed in range(2000))
    assert all(300 < firsts[str(name)] < 500 for name in range(5))


@pytest.mark.parametrize("method", ["uniform", "frontier"])
def test_the_order_of_the_input_is_irrelevant(method):
    names = ["a", "b", "c", "d", "e", "f"]
    rows = [stats("b", 3), stats("c", 8)]
    picked = [
        [record["problem_id"] for record in select(order, step=3, batch=4, method=method, seed=5, stats=rows)]
        for order in (problems(*names), problems(*reversed(names)))
    ]
    assert picked[0] == picked[1]


def test_frontier_takes_mixed_groups_then_untried_then_the_least_recently_tried():
    rows = [stats("solved", 8, step=2), stats("hopeless", 0, step=1), stats("mixed", 5, step=3)]
    assert frontier(["solved", "hopeless", "mixed", "new"], rows, batch=4) == [
        ("mixed", "frontier: last group mixed at step 3 (5/8)"),
        ("new", "frontier: untried"),
        ("hopeless", "frontier: last tried at step 1"),
        ("solved", "frontier: last tried at step 2"),
    ]


def test_among_mixed_groups_the_least_recently_tried_is_first():
    rows = [stats("late", 1, step=5), stats("early", 7, step=2)]
    assert [name for name, _ in frontier(["late", "early"], rows, batch=2)] == ["early", "late"]


def test_the_row_with_the_largest_step_is_the_last_one():
    rows = [stats("a", 8, step=4), stats("a", 4, step=1), stats("b", 4, step=4), stats("b", 0, step=1)]
    found = dict(frontier(["a", "b"], rows, batch=2))
    assert found == {"a": "frontier: last tried at step 4", "b": "frontier: last group mixed at step 4 (4/8)"}


def test_partial_rewards_can_be_mixed_where_all_count_as_correct():
    assert "mixed" in frontier(["a"], [stats("a", 8, groups_mixed=1)], batch=1)[0][1]
    assert "mixed" not in frontier(["a"], [stats("a", 4, groups_mixed=0)], batch=1)[0][1]


def test_statistics_without_a_step_are_the_oldest():
    row = stats("a", 0)
    del row["policy_step"]
    assert frontier(["a"], [row], batch=1) == [("a", "frontier: last tried at an unknown step")]
    assert frontier(["a"], [stats("a", 4, step=0), row], batch=1)[0][1] == "frontier: last group mixed at step 0 (4/8)"


def test_ties_fall_in_another_order_at_another_step_and_seed():
    names = [f"p{i}" for i in range(20)]
    orders = [[name for name, _ in frontier(names, [], 20, step, seed)] for step, seed in [(1, 0), (2, 0), (1, 1)]]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(names)


def test_other_columns_pass_and_a_missing_id_is_filled_in():
    [record] = select([Record({"prompt": "?", "kind": "deep"})], step=0, batch=1, method="uniform", seed=0)
    assert record["kind"] == "deep"
    assert len(record["problem_id"]) == 20


@pytest.mark.parametrize("method", ["uniform", "frontier"])
def test_a_batch_larger_than_the_set_is_the_whole_set(method):
    for step in (0, 1):
        picked = select(problems("a", "b", "c"), step=step, batch=10, method=method, seed=0)
        assert sorted(record["problem_id"] for record in picked) == ["a", "b", "c"]
    assert list(select([], step=0, batch=4, method=method, seed=0)) == []


def test_a_problem_that_is_there_twice_is_refused():
    with pytest.raises(RecordError) as refused:
        list(select(problems("a", "b", "a"), step=0, batch=1, method="uniform", seed=0))
    assert str(refused.value) == (
        "f.jsonl:3: problem_id a stands at f.jsonl:1 already; run rlvr convert --drop-duplicates on it first"
    )


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="uniform, frontier"):
        list(select(problems("a"), step=0, batch=1, method="best", seed=0))


def test_rows_that_are_no_statistics_are_refused():
    with pytest.raises(RecordError) as refused:
        check_stats(Record({"problem_id": "a", "reward": 1.0}, "scored.jsonl:3"))
    assert str(refused.value) == "scored.jsonl:3: n is missing; give the output of rlvr bucketize"
