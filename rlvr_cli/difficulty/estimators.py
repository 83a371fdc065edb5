"""Estimators of what n judged rollouts with c successes say about a problem.

Throughout: n rollouts were judged, c of them succeeded, k (or K) is the size of a group that could be drawn next, and
p is the problem's unknown chance of success. Ratios of binomials are taken of whole numbers, so nothing overflows and
the only rounding is that of the last division.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

BETA_BOUNDS = (0.01, 1000.0)  # of a and b in `fit_beta`


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that k rollouts hold a success: 1 - C(n-c, k) / C(n, k) (arXiv 2107.03374), for 1 <= k <= n."""
    _check_counts(n, c)
    _check_size(k, n)
    return (math.comb(n, k) - math.comb(n - c, k)) / math.comb(n, k)


def signal_chance(p: float, k: int) -> float:
    """S_K(p) = 1 - p^K - (1-p)^K: the chance that K rollouts hold both outcomes, so that the group has a gradient."""
    if not 0 <= p <= 1 or k < 1:
        raise ValueError(f"p is {p} and k is {k}, expected 0 <= p <= 1 and k >= 1")
    small = min(p, 1 - p)
    # 1 - (1-p)^K by expm1, or all digits of a small p are lost
    return max(0.0, -math.expm1(k * math.log1p(-small)) - small**k)


@lru_cache(maxsize=1 << 16)
def signal_unbiased(n: int, c: int, k: int) -> float:
    """The unbiased estimate of S_K, for 1 <= k <= n: 1 - C(c, k) / C(n, k) - C(n-c, k) / C(n, k).

    It is the share of the k-subsets of the n rollouts that hold both outcomes.
    """
    _check_counts(n, c)
    _check_size(k, n)
    whole = math.comb(n, k)
    return (whole - math.comb(c, k) - math.comb(n - c, k)) / whole


@lru_cache(maxsize=1 << 16)
def signal_posterior(n: int, c: int, k: int, a: float, b: float) -> float:
    """The posterior mean of S_K under Beta(c + a, n - c + b). For k > n it is an extrapolation by the prior's shape.

    E[p^k] under Beta(x, y) is the product of (x + i) / (x + y + i) over i < k.
    """
    _check_counts(n, c)
    right, wrong = c + a, n - c + b
    total = right + wrong
    all_right = math.prod((right + i) / (total + i) for i in range(k))
    all_wrong = math.prod((wrong + i) / (total + i) for i in range(k))
    return max(0.0, 1 - all_right - all_wrong)


def squared_advantage(p: float, k: int) -> float:
    """The expected squared advantage r - mean(r) in a group of k: p (1-p) (1 - 1/k)."""
    return p * (1 - p) * (1 - 1 / k)


def squared_advantage_unbiased(n: int, c: int, k: int) -> float:
    """The unbiased estimate of `squared_advantage`: c (n-c) / (n (n-1)) * (1 - 1/k), for n >= 2."""
    _check_counts(n, c, least=2)
    return c * (n - c) / (n * (n - 1)) * (1 - 1 / k)


def wilson_interval(n: int, c: int, level: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of p, for n >= 1 (Wilson 1927): within [0, 1], and of some width at c = 0 and c = n."""
    _check_counts(n, c, least=1)
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = (c + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(c * (n - c) / n + z * z / 4)
    # exactly 0 and 1 at the ends, where rounding would leave 1e-17
    return (centre - half if c else 0.0), (centre + half if c < n else 1.0)


def fit_beta(outcomes: Iterable[tuple[int, int]]) -> tuple[float, float]:
    """(a, b) of the Beta distribution that best explains the (n, c) of a dataset's problems.

    The marginal likelihood of a problem is beta-binomial; up to a constant its logarithm is
    sum_{i<c} log(a+i) + sum_{i<n-c} log(b+i) - sum_{i<n} log(a+b+i), so a dataset needs no more than how many
    problems have a c, n-c and n above each i. The maximum over b is sought for each a, both by golden section on the
    log scale: a and b are strongly correlated, and plain coordinate ascent would creep.

    Both lie within BETA_BOUNDS: with problems all alike, all unsolved, or all solved, the likelihood has no maximum.
    With no outcome at all the answer is (1, 1), the uniform distribution.
    """
    pairs = Counter(outcomes)
    if not any(n for n, _ in pairs):
        return 1.0, 1.0
    above_c = _how_many_above((c, times) for (_, c), times in pairs.items())
    above_rest = _how_many_above((n - c, times) for (n, c), times in pairs.items())
    above_n = _how_many_above((n, times) for (n, _), times in pairs.items())
    low, high = map(math.log, BETA_BOUNDS)

    def best_b(log_a: float) -> tuple[float, float]:
        a = math.exp(log_a)

        def rest(log_b: float) -> float:
            b = math.exp(log_b)
            return _log_rising(above_rest, b) - _log_rising(above_n, a + b)

        log_b, value = _golden_section(rest, low, high)
        return log_b, value + _log_rising(above_c, a)

    log_a, _ = _golden_section(lambda log_a: best_b(log_a)[1], low, high)
    return math.exp(log_a), math.exp(best_b(log_a)[0])


def bootstrap_intervals(
    rows: Sequence[tuple[float, ...]], seed: int, resamples: int = 1000, level: float = 0.95
) -> list[tuple[float, float]]:
    """The percentile interval of the mean of each column; a row is one problem and holds its figures.

    Problems are drawn with replacement, and one draw serves all columns, so a curve is resampled as a whole.
    """
    if not rows:
        return []
    kinds = list(dict.fromkeys(rows))  # a few hundred even for a large dataset: figures come from (n, c)
    number = {row: index for index, row in enumerate(kinds)}
    problems = [number[row] for row in rows]
    rng = random.Random(seed)
    means: list[list[float]] = [[] for _ in rows[0]]
    for _ in range(resamples):
        drawn = Counter(rng.choices(problems, k=len(problems)))
        for column, values in enumerate(means):
            values.append(math.fsum(kinds[kind][column] * times for kind, times in drawn.items()) / len(problems))
    cut = (1 - level) / 2
    return [(_quantile(sorted(values), cut), _quantile(sorted(values), 1 - cut)) for values in means]


def _check_counts(n: int, c: int, least: int = 0) -> None:
    if not 0 <= c <= n or n < least:
        raise ValueError(f"n is {n} and c is {c}, expected n >= {least} and 0 <= c <= n")


def _check_size(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}, expected 1 <= k <= n = {n}")


def _how_many_above(values: Iterable[tuple[int, int]]) -> list[int]:
    """Element i: how many of the values (each with its multiplicity) are greater than i; up to the largest."""
    times = Counter[int]()
    for value, multiplicity in values:
        times[value] += multiplicity
    return list(accumulate(times[i] for i in range(max(times), 0, -1)))[::-1]


def _log_rising(weights: Sequence[int], x: float) -> float:
    return sum(weight * math.log(x + i) for i, weight in enumerate(weights))


def _golden_section(
    f: Callable[[float], float], low: float, high: float, tolerance: float = 1e-5
) -> tuple[float, float]:
    """Where f, with one maximum between low and high, is largest, and its value there."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = f(left), f(right)
    while high - low > tolerance:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = f(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = f(left)
    return (left, at_left) if at_left > at_right else (right, at_right)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between the order statistics."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
