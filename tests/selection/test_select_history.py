"""What statistics tell of a problem's past: the last row, decayed counts, mastered children."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.selection.history import OUTCOMES, check_stats, latest, mastered, read_history


def row(problem, c, n=8, step=0, **columns):
    return {"problem_id": problem, "n": n, "n_correct": c, "policy_step": step, "policy_id": f"w{step}", **columns}


def test_counts_halve_with_each_half_life():
    history = read_history([row("a", 6, step=10), row("a", 8, step=6), row("a", 0, step=2)])["a"]
    assert history.decayed(step=10, half_life=4) == (6 + 8 / 2, 2 + 8 / 4)
    assert history.decayed(step=14, half_life=4) == (3 + 8 / 4, 1 + 8 / 8)
    assert history.decayed(step=10, half_life=float("inf")) == (14, 10)


def test_a_row_from_the_future_weighs_one():
    assert read_history([row("a", 3, step=9)])["a"].decayed(step=2, half_life=1) == (3, 5)


def test_a_row_without_a_step_is_older_than_all():
    unknown = row("a", 8)
    del unknown["policy_step"]
    assert read_history([unknown])["a"].decayed(step=1, half_life=2) == (4, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), max_size=8), st.integers(0, 8))
def test_decay_is_the_sum_over_rows(tries, step):
    rows = [row("a", c, step=at, max_tokens=index) for index, (at, c) in enumerate(tries)]
    right = sum(c * 2 ** -(max(0, step - at) / 3) for at, c in tries)
    wrong = sum((8 - c) * 2 ** -(max(0, step - at) / 3) for at, c in tries)
    found = read_history(rows).get("a")
    assert (found.decayed(step, 3) if found else (0, 0)) == pytest.approx((right, wrong))


def test_the_same_row_twice_counts_once_and_the_whole_stands_for_its_part():
    part, whole = row("a", 1, n=4), row("a", 3, n=8)
    for rows in ([whole, whole], [part, whole], [whole, part]):
        history = read_history(rows)["a"]
        assert history.decayed(0, 1) == (3, 5)
        assert history.tried() == 8


def test_of_rows_of_one_size_and_key_the_later_counts():
    wrong, right = row("a", 0), row("a", 8)
    assert read_history([right, wrong])["a"].decayed(0, 1) == (0, 8)
    assert read_history([wrong, right])["a"].decayed(0, 1) == (8, 0)


@pytest.mark.parametrize("other", [{"policy_id": "v"}, {"temperature": 0.5}, {"policy_step": 1}])
def test_rows_of_another_policy_sampling_or_step_count_too(other):
    assert read_history([row("a", 2), row("a", 2) | other])["a"].decayed(0, 1) == (4, 12)


def test_the_last_row_is_of_the_largest_step_and_the_later_of_equals():
    found = latest([row("a", 1, step=4), row("a", 8, step=1), row("a", 2, step=4)])["a"]
    assert (found.step, found.n_correct) == (4, 2)
    assert read_history([row("a", 1, step=1), row("a", 0, step=4)])["a"].solved


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        (row("a", 0), "too_hard"),
        (row("a", 8), "too_easy"),
        (row("a", 3), "in_band"),
        (row("a", 0, groups_mixed=1), "in_band"),  # partial rewards that differ
        (row("a", 8, groups_mixed=1), "in_band"),
        (row("a", 4, groups_mixed=0), "in_band"),  # one group all wrong and one all right
        (row("a", 0, n=0), None),
    ],
)
def test_the_outcome_of_the_last_row(measured, outcome):
    assert latest([measured])["a"].outcome == outcome
    assert outcome in (*OUTCOMES, None)


def test_rows_that_are_no_statistics_are_refused():
    with pytest.raises(RecordError) as refused:
        check_stats(Record({"problem_id": "a", "reward": 1.0}, "scored.jsonl:3"))
    assert str(refused.value) == "scored.jsonl:3: n is missing; give the output of rlvr bucketize"


POOL = [Record({"problem_id": name}) for name in ("parent", "other")] + [
    Record({"problem_id": name, "parent_id": "parent"}) for name in ("first", "second", "third")
]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([row("parent", 0, step=2), row("first", 6, step=3)], {"parent": 1}),
        ([row("parent", 0, step=2), row("first", 6, step=3), row("second", 8, step=2)], {"parent": 2}),
        ([row("parent", 0, step=2), row("first", 5, step=3)], {}),  # 5/8 is no mastery
        ([row("parent", 0, step=2), row("first", 8, step=3), row("second", 1, step=3)], {}),
        ([row("parent", 0, step=4), row("first", 8, step=3)], {}),  # the parent failed after it
        ([row("parent", 0, step=4), row("first", 8, step=5), row("second", 8, step=3)], {}),
        ([row("parent", 0, step=2)], {}),  # no child was measured
        ([row("parent", 0, step=2), row("first", 0, n=0, step=3)], {}),  # nor here: nothing was judged
        ([row("parent", 1, step=2), row("first", 8, step=3)], {}),  # not all wrong
        ([row("parent", 8, step=1), row("parent", 0, step=2), row("first", 8, step=3)], {"parent": 1}),
        ([row("first", 8, step=3)], {}),  # an untried parent
    ],
)
def test_a_failed_problem_returns_when_all_its_measured_children_are_mastered(rows, found):
    assert mastered(POOL, read_history(rows), 0.75) == found
