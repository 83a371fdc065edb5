"""Buckets by the pass rate of a base run."""

from collections import defaultdict
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.difficulty.buckets import zero_then_equal


def test_never_solved_is_hard_and_the_rest_is_halved():
    outcomes = {"a": (8, 0), "b": (8, 1), "c": (8, 3), "d": (8, 5), "e": (8, 8)}
    assert zero_then_equal(outcomes) == {"a": "hard", "b": "medium", "c": "medium", "d": "easy", "e": "easy"}


def test_rates_are_compared_whatever_the_counts():
    assert zero_then_equal({"a": (3, 1), "b": (6, 2), "c": (9, 9)}) == {"a": "medium", "b": "medium", "c": "easy"}


def test_a_tie_goes_to_the_side_that_keeps_the_halves_closest():
    low = {f"low{i}": (8, 1) for i in range(2)}
    tied = {f"tied{i}": (8, 4) for i in range(5)}
    high = {f"high{i}": (8, 7) for i in range(4)}
    found = zero_then_equal(low | tied | high)
    assert {found[name] for name in low | tied} == {"medium"}  # 7 and 4, not 2 and 9
    assert {found[name] for name in high} == {"easy"}


def test_one_rate_has_no_cut():
    assert zero_then_equal({"a": (4, 2), "b": (8, 4), "c": (8, 0)}) == {"a": "medium", "b": "medium", "c": "hard"}
    assert zero_then_equal({"a": (4, 4), "b": (8, 8)}) == {"a": "easy", "b": "easy"}


def test_without_a_judged_rollout_there_is_no_bucket():
    assert zero_then_equal({"a": (0, 0), "b": (4, 0)}) == {"b": "hard"}


@given(
    st.dictionaries(
        st.text("abcdef", max_size=2), st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
    )
)
def test_a_rate_is_never_split_and_buckets_follow_the_rates(outcomes):
    found = zero_then_equal(outcomes)
    rates = defaultdict(set)
    for problem, (n, c) in outcomes.items():
        rates[found[problem]].add(Fraction(c, n))
    assert rates["hard"] <= {0}
    assert not rates["hard"] & (rates["medium"] | rates["easy"])
    assert all(medium < easy for medium in rates["medium"] for easy in rates["easy"])
    if len(rates["medium"] | rates["easy"]) > 1:
        assert rates["medium"]
        assert rates["easy"]
