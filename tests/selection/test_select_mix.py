"""Shares of a batch: what is typed, who belongs to which class, whole slots."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record
from rlvr_cli.selection.history import read_history
from rlvr_cli.selection.mix import apportion, classes_of, fill, parse_mix

NAMES = st.sampled_from(["problems", "children", "frontier", "drop-step", "generation-2"])
SHARES = st.dictionaries(NAMES, st.integers(1, 40), min_size=1).map(
    lambda parts: {name: Fraction(part, sum(parts.values())) for name, part in parts.items()}
)


def test_shares_are_what_was_typed():
    assert parse_mix("problems=0.2, children=.3,frontier=5e-1") == {
        "problems": Fraction(1, 5),
        "children": Fraction(3, 10),
        "frontier": Fraction(1, 2),
    }
    assert parse_mix("frontier=1") == {"frontier": 1}
    assert parse_mix("a=0.33,b=0.33,c=0.33") == dict.fromkeys("abc", Fraction(1, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--mix has '', expected CLASS=SHARE"),
        ("problems", "--mix has 'problems'"),
        ("problems=half", "--mix has 'problems=half'"),
        ("=1", "--mix has '=1'"),
        ("problems=0,frontier=1", "--mix has 'problems=0'"),
        ("problems=-0.5,frontier=1.5", "--mix has 'problems=-0.5'"),
        ("problems=nan", "--mix has 'problems=nan'"),
        ("problems=inf", "--mix has 'problems=inf'"),
        ("problems=0.5,", "--mix has ''"),
        ("problems=0.5,problems=0.5", "--mix names problems twice"),
        ("problems=0.5,children=0.4", "the shares of --mix sum to 0.9, expected 1"),
        ("problems=50,children=50", "--mix has 'problems=50'"),
    ],
)
def test_what_is_no_mix_is_refused_in_one_line(text, said):
    with pytest.raises(UsageError) as refused:
        parse_mix(text)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


PROBLEMS = [
    Record({"problem_id": "original"}),
    Record({"problem_id": "tried", "generation": 0}),
    Record({"problem_id": "child", "generation": 1, "operator": "drop-step"}),
    Record({"problem_id": "other-child", "generation": 1, "operator": "smaller"}),
    Record({"problem_id": "grandchild", "generation": 2, "operator": "drop-step"}),
    Record({"problem_id": "mixed-grandchild", "generation": 2, "operator": "drop-step"}),
    Record({"problem_id": "odd", "generation": 1, "operator": "frontier"}),  # a fixed name stays what it is
]
HISTORIES = read_history(
    {"problem_id": name, "n": 8, "n_correct": c} for name, c in [("tried", 0), ("mixed-grandchild", 3), ("child", 8)]
)


@pytest.mark.parametrize(
    ("named", "classes"),
    [
        (
            ["problems", "children", "generation-2", "drop-step", "frontier"],
            [["original", "tried"], ["odd", "other-child"], [], ["child", "grandchild"], ["mixed-grandchild"]],
        ),
        (
            ["problems", "children", "generation-2"],
            [["original", "tried"], ["child", "odd", "other-child"], ["grandchild", "mixed-grandchild"]],
        ),
        (["generation-0", "problems"], [["original", "tried"], []]),
        (["frontier"], [["mixed-grandchild"]]),
        (["smaller", "larger"], [["other-child"], []]),
    ],
)
def test_each_problem_is_in_the_most_specific_class_that_is_named(named, classes):
    shares = {name: Fraction(1, len(named)) for name in named}
    assert classes_of(PROBLEMS, shares, HISTORIES) == dict(zip(named, classes, strict=True))


@pytest.mark.parametrize(
    ("total", "mix", "slots"),
    [
        (10, "problems=0.2,children=0.3,frontier=0.5", [2, 3, 5]),
        (64, "problems=0.2,children=0.3,frontier=0.5", [13, 19, 32]),  # 12.8, 19.2, 32
        (100, "problems=0.29,children=0.71", [29, 71]),  # 0.29 * 100 is 28.999... in floating point
        (5, "problems=0.5,children=0.3,frontier=0.2", [3, 1, 1]),  # 2.5, 1.5, 1: a tie goes to the first
        (5, "children=0.3,problems=0.5,frontier=0.2", [2, 2, 1]),
        (1, "problems=0.2,children=0.3,frontier=0.5", [0, 0, 1]),
        (0, "problems=0.5,children=0.5", [0, 0]),
    ],
)
def test_shares_become_slots_by_largest_remainder(total, mix, slots):
    assert list(apportion(total, parse_mix(mix)).values()) == slots


@pytest.mark.parametrize(
    ("room", "slots"),
    [
        ([99, 99, 99], [20, 30, 50]),
        ([99, 99, 10], [36, 54, 10]),  # 90 left, 2 : 3
        ([99, 0, 0], [99, 0, 0]),
        ([100, 0, 0], [100, 0, 0]),  # as at step 0: all of it
        ([30, 99, 10], [30, 60, 10]),  # 36 and 54 of the 90 first
        ([5, 6, 7], [5, 6, 7]),
    ],
)
def test_what_a_class_cannot_fill_goes_to_the_others_in_proportion(room, slots):
    shares = parse_mix("problems=0.2,children=0.3,frontier=0.5")
    assert list(apportion(100, shares, dict(zip(shares, room, strict=True))).values()) == slots


@given(st.integers(0, 200), SHARES, st.data())
def test_slots_fill_the_batch_within_the_rooms_and_one_of_each_share(total, shares, data):
    free = apportion(total, shares)
    assert sum(free.values()) == total
    assert all(abs(free[name] - total * share) < 1 for name, share in shares.items())
    room = {name: data.draw(st.integers(0, 120)) for name in shares}
    slots = apportion(total, shares, room)
    assert sum(slots.values()) == min(total, sum(room.values()))
    assert all(0 <= slots[name] <= room[name] for name in shares)


def test_a_second_queue_fills_what_the_first_left():
    halves = {"x": Fraction(1, 2), "y": Fraction(1, 2)}
    first, spare = {"x": ["x1"], "y": ["y1"]}, {"x": ["x2", "x3"], "y": ["y2", "y3"]}
    assert fill(4, halves, first, spare) == {"x": ["x1", "x2"], "y": ["y1", "y2"]}
    assert fill(2, halves, first, spare) == first
