"""Difficulty buckets: problems sorted by how often a base policy solves them."""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

BUCKETS = ("hard", "medium", "easy")
UNKNOWN = "unknown"  # the base run has no judged rollout of the problem


def zero_then_equal(outcomes: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """The bucket of each problem, from its (n, c): n judged rollouts of the base policy, c of them successes.

    Never solved (pass@n = 0) is `hard`. The rest is cut in two parts of equal count by pass rate, `medium` below and
    `easy` above. Problems of one pass rate stay together: the cut is made between two neighbouring pass rates, where
    the counts come closest to equal (of two such places, the lower). Where all have one rate there is nothing to cut:
    they are `medium`, or `easy` if they are solved every time. A problem with n = 0 gets no bucket.
    """
    rates = {problem: c / n for problem, (n, c) in outcomes.items() if n}
    cut = _cut(Counter(rate for rate in rates.values() if rate > 0))
    return {problem: "hard" if rate == 0 else "easy" if rate >= cut else "medium" for problem, rate in rates.items()}


def _cut(counts: Counter[float]) -> float:
    """The lowest rate that is `easy`."""
    ordered = sorted(counts)
    if len(ordered) < 2:
        return 1.0
    total = counts.total()
    below = 0
    gaps = []
    for lower, upper in pairwise(ordered):
        below += counts[lower]
        gaps.append((abs(total - 2 * below), upper))
    return min(gaps)[1]
