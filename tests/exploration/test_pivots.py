"""States, their worth, and the draw, by hand and by chi-square."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from rlvr_cli.errors import RecordError
from rlvr_cli.exploration.pivots import METHODS, Pivot, Worth, candidates, draw, states
from rlvr_cli.exploration.recoverability import Logistic
from rlvr_cli.exploration.segments import Segments
from rlvr_cli.records import Record

DRAWS = 20_000


def failed(length=120, finish_reason="length", max_tokens=512, **columns):
    columns = {
        "completion_token_ids": [5] * length,
        "finish_reason": finish_reason,
        "max_tokens": max_tokens,
        **columns,
    }
    return Record(columns, "scored.jsonl:7")


def found(record, every=50):
    return [(state.prefix_len, state.depth) for state in states(record, Segments("tokens", every).ends(record))]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        # 120 tokens are segments of 50, 50, 20: N = 4, and the last state, x = 1, is no candidate
        (failed(120), [(0, 1 / 4), (50, 2 / 4), (100, 3 / 4)]),
        (failed(120, "stop"), [(0, 1 / 4), (50, 2 / 4), (100, 3 / 4)]),
        (failed(100), [(0, 1 / 3), (50, 2 / 3)]),
        (failed(30), [(0, 1 / 2)]),
        # token 101 of 101 is the end token: what comes before it would sample it again; N is 4 all the same
        (failed(101, "stop"), [(0, 1 / 4), (50, 2 / 4)]),
        (failed(101, "length"), [(0, 1 / 4), (50, 2 / 4), (100, 3 / 4)]),
        (failed(1, "stop"), []),
        (failed(1, "length"), [(0, 1 / 2)]),
        # no room for new tokens from 100 on
        (failed(120, max_tokens=101), [(0, 1 / 4), (50, 2 / 4), (100, 3 / 4)]),
        (failed(120, max_tokens=100), [(0, 1 / 4), (50, 2 / 4)]),
        (failed(120, max_tokens=0), []),
        # the root is the only state and the last: there is nothing in it to go back to
        (failed(0), []),
        (failed(0, "stop"), []),
    ],
)
def test_states_by_hand(record, expected):
    assert found(record) == expected


@given(st.integers(0, 300), st.integers(1, 60), st.sampled_from(["stop", "length"]), st.integers(0, 400))
def test_states_lie_within_and_exclusions_do_not_move_them(length, every, finish_reason, max_tokens):
    record = failed(length, finish_reason, max_tokens)
    ends = Segments("tokens", every).ends(record)
    every_state = {0: 1 / (len(ends) + 1)} | {end: (j + 2) / (len(ends) + 1) for j, end in enumerate(ends)}
    last = length - (finish_reason == "stop")
    expected = {p: x for p, x in every_state.items() if p < min(last, max_tokens)}
    assert dict(found(record, every)) == pytest.approx(expected)


CHANCE = Logistic(-4.0, 2.0)


@pytest.mark.parametrize(
    ("worth", "expected"),
    [
        (Worth(), [1 / 16, 4 / 16, 9 / 16]),
        (Worth(chance=CHANCE), [CHANCE(0.25) / 16, CHANCE(0.5) * 4 / 16, CHANCE(0.75) * 9 / 16]),
        (Worth(chance=CHANCE, gamma=1), [CHANCE(0.25) / 4, CHANCE(0.5) / 2, CHANCE(0.75) * 3 / 4]),
        (Worth(chance=CHANCE, gamma=0), [CHANCE(0.25), CHANCE(0.5), CHANCE(0.75)]),
        (Worth("recoverability", chance=CHANCE), [CHANCE(0.25), CHANCE(0.5), CHANCE(0.75)]),
        (Worth("depth", chance=CHANCE), [1 / 16, 4 / 16, 9 / 16]),
        (Worth("depth", chance=CHANCE, gamma=0.5), [0.5, 0.5**0.5, 0.75**0.5]),
        (Worth("random", chance=CHANCE), [1, 1, 1]),
    ],
)
def test_utility_and_its_ablations(worth, expected):
    choices = candidates(failed(), [50, 100, 120], worth)
    assert [pivot.utility for pivot in choices] == pytest.approx(expected, abs=1e-15)
    # what was fitted is told whatever the method
    told = [1, 1, 1] if worth.chance is None else [CHANCE(x) for x in (0.25, 0.5, 0.75)]
    assert [pivot.recoverability for pivot in choices] == told
    assert [pivot.prefix_len for pivot in choices] == [0, 50, 100]


def test_every_method_has_its_formula():
    assert len({Worth(method, chance=CHANCE).utility(0.3) for method in METHODS}) == len(METHODS)
    with pytest.raises(ValueError, match="unknown method 'best'"):
        Worth("best").utility(0.3)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.2, 0.7, 0.9], {50: 0.2, 100: 0.7}),  # one a segment: of the state after it; the root has none
        ([0, 7, 1], {100: 7.0}),  # a state of score 0 is never drawn
        ([n / 1000 for n in range(120)], {50: 0.049, 100: 0.099}),  # one a token: of the last inherited one
        ([0.0, 0.0, 0.0], {}),
    ],
)
def test_scores_take_the_place_of_the_utility(scores, expected):
    choices = candidates(failed(prm=scores), [50, 100, 120], Worth(score_column="prm"))
    assert {pivot.prefix_len: pivot.utility for pivot in choices} == expected


def test_scores_of_tokens_and_of_one_token_segments_are_the_same_thing():
    record = failed(4, prm=[1, 2, 3, 4])
    choices = candidates(record, Segments("tokens", 1).ends(record), Worth(score_column="prm"))
    assert [(pivot.prefix_len, pivot.utility) for pivot in choices] == [(1, 1.0), (2, 2.0), (3, 3.0)]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {},
            "prm is missing, expected a list with a score for each of 3 segments or each of 120 completion tokens; "
            "score it again, cut by the same --segments",
        ),
        ({"prm": 0.5}, "prm is no list"),
        ({"prm": [0.1, 0.2]}, "prm is 2 numbers"),
        ({"prm": [0.1, 0.2, 0.3, 0.4]}, "prm is 4 numbers"),
        ({"prm": [0.1, -0.2, 0.3]}, "prm holds -0.2, expected numbers from 0 on; shift or exp() them"),
        ({"prm": [0.1, True, 0.3]}, "prm holds True"),
        ({"prm": [0.1, "x", 0.3]}, "prm holds 'x'"),
        ({"prm": [0.1, float("nan"), 0.3]}, "prm holds nan"),
        ({"prm": [0.1, 10**400, 0.3]}, "prm holds 1000"),
    ],
)
def test_scores_that_do_not_fit_are_refused(columns, said):
    with pytest.raises(RecordError, match=r"^scored\.jsonl:7: prm ") as caught:
        candidates(failed(**columns), [50, 100, 120], Worth(score_column="prm"))
    assert said in str(caught.value)


@pytest.mark.parametrize("record", [failed(0), failed(0, prm=[]), failed(1, "stop"), failed(120, max_tokens=0)])
def test_where_no_state_can_be_drawn_no_score_is_asked_for(record):
    ends = Segments("tokens", 50).ends(record)
    assert candidates(record, ends, Worth(score_column="prm")) == []


PIVOTS = candidates(failed(210), [50, 100, 150, 200, 210], Worth(chance=CHANCE))
WEIGHTS = {pivot.prefix_len: pivot.utility for pivot in PIVOTS}


def p_value(observed, weights):
    """The p-value of a chi-square test of the observed counts against the weights."""
    total = sum(weights.values())
    drawn = observed.total()
    return chisquare([observed[p] for p in weights], [drawn * w / total for w in weights.values()]).pvalue


def test_pivots_are_drawn_in_proportion_to_their_utility():
    observed = Counter(draw(PIVOTS, 1, seed)[0].prefix_len for seed in range(DRAWS))
    assert p_value(observed, WEIGHTS) > 0.001
    assert p_value(observed, dict.fromkeys(WEIGHTS, 1.0)) < 1e-9  # the test can tell


def test_the_second_pivot_is_drawn_in_proportion_among_those_left():
    pairs = Counter(tuple(pivot.prefix_len for pivot in draw(PIVOTS, 2, seed)) for seed in range(DRAWS))
    total = sum(WEIGHTS.values())
    exact = {
        (first, second): WEIGHTS[first] / total * WEIGHTS[second] / (total - WEIGHTS[first])
        for first in WEIGHTS
        for second in WEIGHTS
        if first != second
    }
    assert set(pairs) <= set(exact)  # never the same state twice
    assert p_value(pairs, exact) > 0.001
    for first in WEIGHTS:
        left = {p: weight for p, weight in WEIGHTS.items() if p != first}
        seconds = Counter({second: count for (one, second), count in pairs.items() if one == first})
        assert p_value(seconds, left) > 0.001


@given(st.lists(st.floats(1e-300, 1e308), min_size=1, max_size=8), st.integers(1, 10), st.integers(0, 2**31 - 1))
def test_draws_are_distinct_and_as_many_as_there_are(utilities, count, seed):
    choices = [Pivot(place, 0.5, 1.0, utility) for place, utility in enumerate(utilities)]
    drawn = draw(choices, count, seed)
    assert len(set(drawn)) == len(drawn) == min(count, len(choices))
    assert drawn == draw(choices, count, seed)
    assert drawn[:1] == draw(choices, 1, seed)  # more pivots a rollout keep the first
