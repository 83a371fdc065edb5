"""P(success | x): our Newton's method against scikit-learn, and what becomes an observation."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from rlvr_cli.errors import RecordError
from rlvr_cli.exploration.recoverability import LATEST, Logistic, check_branch, fit, observations
from rlvr_cli.records import Record


def branch(pivot_id="p", reward=0.0, depth=0.5, policy_step=0, **columns):
    columns = {"stream": "branch", "pivot_id": pivot_id, "depth": depth, "policy_step": policy_step, **columns}
    judged = {"verdict": "error"} if reward is None else {"verdict": "wrong", "reward": reward}
    return Record({**columns, **judged}, "branches.jsonl:3")


def scikit_learn(seen):
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(np.array([[x] for x, _ in seen]), [success for _, success in seen])
    return Logistic(float(model.coef_[0, 0]), float(model.intercept_[0]))


def drawn(count, slope, intercept, seed):
    """Observations of a known chance, at the depths that segments give."""
    generator = random.Random(seed)
    depths = [(j + 1) / n for n in (2, 3, 5, 11) for j in range(n - 1)]
    truth = Logistic(slope, intercept)
    return [(x, generator.random() < truth(x)) for x in generator.choices(depths, k=count)]


SETS = {
    **{f"random-{n}-{slope}": drawn(n, slope, 1.0, n) for n in (30, 300, 10_000) for slope in (-9.0, -2.0, 0.0, 3.0)},
    "separable": [(x, x < 0.5) for x in np.linspace(0.05, 1, 20).tolist()],
    "separable, many": [(x, x > 0.5) for x in np.linspace(0.05, 1, 20).tolist()] * 500,
    "constant": [(0.5, index % 4 == 0) for index in range(40)],
    "one success in 10,000": [(0.25 + 0.5 * (index % 2), index == 7) for index in range(10_000)],
    "one failure, far away": [(0.001, True)] * 5000 + [(1.0, False)],
    # full steps of Newton's method run away from these
    "a cliff": [(0.5, True)] * 49 + [(0.5, False)] * 2 + [(1.0, True)] + [(1.0, False)] * 4999,
    "a wall": [(0.01, False)] * 50 + [(0.75, True)] * 500,
    "tiny depths": [(x / 1e6, x % 3 == 0) for x in range(1, 50)],
}


@pytest.mark.parametrize("seen", SETS.values(), ids=SETS)
def test_the_fit_is_that_of_scikit_learn(seen):
    ours, theirs = fit(seen), scikit_learn(seen)
    assert ours.slope == pytest.approx(theirs.slope, rel=1e-6, abs=1e-6)
    assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-6, abs=1e-6)


def test_scikit_learn_leaves_the_intercept_alone_and_so_do_we():
    """At a constant depth a free intercept explains everything: no slope, and the rate as it was seen."""
    chance = fit(SETS["constant"])
    assert chance.slope == pytest.approx(0, abs=1e-12)
    assert chance(0.5) == pytest.approx(0.25, abs=1e-12)


COUNTS = st.sampled_from([0, 1, 2, 50, 2000])


@given(st.lists(st.tuples(st.floats(1e-3, 1), COUNTS, COUNTS), min_size=1, max_size=5))
def test_the_gradient_of_the_fit_is_zero(rows):
    rows = [*rows, (0.3, 5, 0), (0.7, 0, 6)]
    chance = fit([(x, outcome) for x, wins, losses in rows for outcome in [True] * wins + [False] * losses])
    x, wins, losses = np.array(rows).T
    p = 1 / (1 + np.exp(-(chance.slope * x + chance.intercept)))
    error = (wins + losses) * p - wins
    assert error @ x + chance.slope == pytest.approx(0, abs=1e-9 * sum(wins + losses))
    assert error.sum() == pytest.approx(0, abs=1e-9 * sum(wins + losses))


def test_the_fit_does_not_depend_on_the_order():
    seen = drawn(500, -3.0, 0.5, 1)
    assert fit(seen) == fit(sorted(seen)) == fit(seen[::-1])


@pytest.mark.parametrize(
    ("seen", "enough"),
    [
        ([], False),
        ([(0.5, True)] * 5 + [(0.7, False)] * 5, False),
        ([(0.5, True)] * 5 + [(0.7, False)] * 6, True),
        ([(0.5, True)] * 50, False),
        ([(0.5, False)] * 50, False),
        ([(0.5, False)] * 50 + [(0.5, True)], True),
    ],
)
def test_nothing_is_fitted_until_more_than_ten_observations_hold_both_outcomes(seen, enough):
    assert (fit(seen) is not None) == enough


def test_chances_stay_within_0_and_1():
    assert Logistic(-5000.0, 0.0)(1.0) == 0.0
    assert Logistic(5000.0, 0.0)(1.0) == 1.0
    assert Logistic(2.0, -1.0)(0.75) == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-15)


def test_a_pivot_succeeds_if_any_of_its_judged_branches_does():
    records = [
        branch("a", 0.0, depth=0.25),
        branch("b", 0.0, depth=0.5),
        branch("a", 1.0, depth=0.25),
        branch("c", None, depth=0.75),  # no branch of it was judged: no observation
        branch("b", None, depth=0.5),
        branch("a", 0.0, depth=0.25),
        branch("d", 1.0, stream="main"),
    ]
    assert observations(records, threshold=0.0) == [(0.25, True), (0.5, False)]
    assert observations(records, threshold=1.0) == [(0.25, False), (0.5, False)]
    assert sorted(observations(records[::-1], threshold=0.0)) == [(0.25, True), (0.5, False)]
    assert observations(records * 2, threshold=0.0) == [(0.25, True), (0.5, False)]


def test_the_latest_are_of_the_largest_step_then_those_read_last():
    steps = [3, 1, 2, 1, 3]
    records = [branch(f"p{place}", depth=(place + 1) / 10, policy_step=step) for place, step in enumerate(steps)]
    assert [x for x, _ in observations(records, 0.0, latest=2)] == [0.1, 0.5]
    assert [x for x, _ in observations(records, 0.0, latest=3)] == [0.3, 0.1, 0.5]
    assert [x for x, _ in observations(records, 0.0, latest=4)] == [0.4, 0.3, 0.1, 0.5]


def test_ten_thousand_observations_are_kept():
    records = [branch(f"p{place}", depth=0.25 if place < 5 else 0.5) for place in range(LATEST + 3)]
    kept = observations(records, 0.0)
    assert (LATEST, len(kept), kept.count((0.25, False))) == (10_000, 10_000, 2)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"pivot_id": None}, "pivot_id is missing; give scored branches: rlvr resample, then rlvr verify"),
        ({"depth": None}, "depth is missing: its pivot had none; leave such branches out of --history"),
        ({"policy_step": None}, "policy_step is missing"),
        ({"depth": 0.0}, "depth is 0.0, expected above 0 and at most 1"),
        ({"depth": 1.5}, "depth is 1.5, expected above 0 and at most 1"),
        ({"depth": "deep"}, 'depth is "deep", expected a number'),
        ({"verdict": None}, "verdict is missing; run rlvr verify on it first"),
        ({"reward": None}, "reward is missing; run rlvr verify on it first"),
    ],
)
def test_what_is_no_scored_branch_is_refused(columns, said):
    record = Record({key: value for key, value in {**branch(), **columns}.items() if value is not None}, "b.jsonl:3")
    with pytest.raises(RecordError, match=r"^b\.jsonl:3: ") as caught:
        check_branch(record)
    assert said in str(caught.value)


def test_other_streams_and_branches_that_could_not_be_judged_may_be_among_them():
    check_branch(branch(reward=None))
    check_branch(Record({"stream": "main", "rollout_id": "r"}))
    check_branch(Record({"rollout_id": "r"}))
