"""Each estimator against an independent reference: all subsets, exact fractions, numerical integration, simulation."""

import math
import random
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.difficulty.estimators import (
    bootstrap_intervals,
    fit_beta,
    pass_at_k,
    signal_chance,
    signal_posterior,
    signal_unbiased,
    squared_advantage,
    squared_advantage_unbiased,
    wilson_interval,
)

small_cases = [(n, c, k) for n in range(1, 8) for c in range(n + 1) for k in range(1, n + 1)]


def groups(n, c, k):
    """Every group of k that can be picked from n rollouts of which c succeeded."""
    return list(combinations([1] * c + [0] * (n - c), k))


@pytest.mark.parametrize(("n", "c", "k"), small_cases)
def test_estimates_are_the_share_of_all_subsets(n, c, k):
    picked = groups(n, c, k)
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(group) for group in picked) / len(picked))
    assert signal_unbiased(n, c, k) == pytest.approx(sum(0 < sum(group) < k for group in picked) / len(picked))


def binomial_mean(estimate, n, p):
    """The expectation of an estimate over c ~ Binomial(n, p), exactly."""
    return sum(math.comb(n, c) * p**c * (1 - p) ** (n - c) * estimate(n, c) for c in range(n + 1))


@given(st.integers(2, 40), st.data(), st.floats(0.01, 0.99))
def test_estimates_are_unbiased(n, data, p):
    k = data.draw(st.integers(2, n))
    assert binomial_mean(lambda n, c: pass_at_k(n, c, k), n, p) == pytest.approx(1 - (1 - p) ** k)
    assert binomial_mean(lambda n, c: signal_unbiased(n, c, k), n, p) == pytest.approx(signal_chance(p, k))
    assert binomial_mean(lambda n, c: squared_advantage_unbiased(n, c, k), n, p) == pytest.approx(
        squared_advantage(p, k)
    )


def test_thousands_of_rollouts_overflow_nothing():
    assert pass_at_k(4000, 1, 256) == pytest.approx(256 / 4000)
    assert signal_unbiased(4000, 1, 256) == pytest.approx(256 / 4000)
    assert signal_unbiased(4000, 2000, 256) == 1.0
    assert signal_posterior(4000, 0, 256, 0.3, 2.0) == pytest.approx(0.3 * 256 / 4128, rel=0.05)


@given(st.fractions(0, 1), st.integers(1, 64))
def test_signal_chance_is_its_closed_form(p, k):
    assert signal_chance(float(p), k) == pytest.approx(float(1 - p**k - (1 - p) ** k), abs=1e-12)


def test_signal_chance_keeps_the_digits_of_a_rare_success():
    p = Fraction(1, 10**12)
    assert signal_chance(float(p), 8) == pytest.approx(float(1 - p**8 - (1 - p) ** 8), rel=1e-9)
    assert signal_chance(0.0, 8) == signal_chance(1.0, 8) == 0.0


def test_squared_advantage_is_the_mean_over_groups():
    p, k = 0.3, 4
    expected = 0.0
    for c in range(k + 1):
        rewards = [1.0] * c + [0.0] * (k - c)
        mean = sum(rewards) / k
        expected += math.comb(k, c) * p**c * (1 - p) ** (k - c) * sum((r - mean) ** 2 for r in rewards) / k
    assert squared_advantage(p, k) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "c", "k", "a", "b"), [(8, 2, 16, 1.5, 2.5), (8, 0, 256, 1.0, 3.0), (4, 4, 8, 2.0, 1.0)])
def test_posterior_mean_is_the_integral_over_the_posterior(n, c, k, a, b):
    steps = 100_000
    x, y = c + a, n - c + b
    log_norm = math.lgamma(x + y) - math.lgamma(x) - math.lgamma(y)
    integral = 0.0
    for i in range(steps):
        p = (i + 0.5) / steps
        density = math.exp(log_norm + (x - 1) * math.log(p) + (y - 1) * math.log1p(-p))
        integral += signal_chance(p, k) * density / steps
    assert signal_posterior(n, c, k, a, b) == pytest.approx(integral, abs=1e-4)


def simulated(a, b, problems, n, seed):
    rng = random.Random(seed)
    outcomes = []
    for _ in range(problems):
        p = rng.betavariate(a, b)
        outcomes.append((n, sum(rng.random() < p for _ in range(n))))
    return outcomes


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.9), (2.0, 5.0), (1.0, 1.0)])
def test_fit_finds_the_distribution_that_made_the_data(a, b):
    found = fit_beta(simulated(a, b, problems=3000, n=16, seed=1))
    assert found == pytest.approx((a, b), rel=0.12)


def beta_binomial_log_likelihood(outcomes, a, b):
    def lbeta(x, y):
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    return sum(lbeta(c + a, n - c + b) - lbeta(a, b) for n, c in outcomes)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=3, max_size=20))
def test_no_point_of_a_grid_is_likelier_than_the_fit(outcomes):
    best = beta_binomial_log_likelihood(outcomes, *fit_beta(outcomes))
    grid = [10 ** (power / 4) for power in range(-8, 13)]
    assert all(beta_binomial_log_likelihood(outcomes, a, b) <= best + 1e-3 for a in grid for b in grid)


def test_fit_of_data_without_a_maximum_stays_in_bounds():
    a, b = fit_beta([(32, 0)] * 1000)
    assert a == pytest.approx(0.01, rel=1e-3)
    assert b == pytest.approx(1000, rel=1e-3)
    assert fit_beta([]) == fit_beta([(0, 0)]) == (1.0, 1.0)


def test_extrapolated_effectiveness_is_near_the_truth():
    """Eight rollouts a problem foretell E_64 of problems whose chances are Beta(0.5, 2)."""
    outcomes = simulated(0.5, 2.0, problems=2000, n=8, seed=2)
    a, b = fit_beta(outcomes)
    foretold = sum(signal_posterior(n, c, 64, a, b) for n, c in outcomes) / len(outcomes)
    assert foretold == pytest.approx(signal_posterior(0, 0, 64, 0.5, 2.0), abs=0.03)


def test_wilson_interval():
    assert wilson_interval(10, 3) == pytest.approx((0.1078, 0.6032), abs=1e-4)  # textbook value
    assert all(wilson_interval(n, 0)[0] == 0.0 and wilson_interval(n, n)[1] == 1.0 for n in range(1, 300))
    assert wilson_interval(8, 0)[1] == pytest.approx(0.3244, abs=1e-4)
    assert wilson_interval(8, 8) == pytest.approx((1 - 0.3244, 1.0), abs=1e-4)


@given(st.integers(1, 200), st.data())
def test_wilson_bounds_are_where_the_score_test_turns(n, data):
    c = data.draw(st.integers(1, n - 1)) if n > 1 else 0
    for bound in wilson_interval(n, c):
        if 0 < bound < 1:
            assert abs(c / n - bound) == pytest.approx(1.959964 * math.sqrt(bound * (1 - bound) / n), rel=1e-4)


def test_bootstrap_is_as_wide_as_the_standard_error_says():
    rng = random.Random(0)
    rows = [(float(rng.random() < 0.3), 2.0) for _ in range(1000)]
    mean = sum(row[0] for row in rows) / len(rows)
    (low, high), constant = bootstrap_intervals(rows, seed=3, resamples=1000)
    half = 1.96 * math.sqrt(mean * (1 - mean) / len(rows))
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=half / 6)
    assert constant == (2.0, 2.0)


def test_bootstrap_is_the_same_each_time_and_another_with_another_seed():
    rows = [(i / 50,) for i in range(50)]
    assert bootstrap_intervals(rows, seed=1, resamples=50) == bootstrap_intervals(rows, seed=1, resamples=50)
    assert bootstrap_intervals(rows, seed=1, resamples=50) != bootstrap_intervals(rows, seed=2, resamples=50)
    assert bootstrap_intervals([], seed=1) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: pass_at_k(4, 5, 1),
        lambda: pass_at_k(4, 1, 5),
        lambda: signal_unbiased(4, 1, 0),
        lambda: signal_posterior(4, -1, 8, 1, 1),
        lambda: squared_advantage_unbiased(1, 1, 2),
        lambda: wilson_interval(0, 0),
        lambda: signal_chance(1.5, 2),
    ],
)
def test_counts_that_cannot_be_are_refused(call):
    with pytest.raises(ValueError, match="expected"):
        call()
