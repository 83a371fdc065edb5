"""P(success | x): how likely a failed rollout is to be saved from a state at depth x, learnt from past branches."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rlvr_cli.checks import check_judged
from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns

LATEST = 10_000  # observations that are fitted
ENOUGH = 10  # until there are more, P = 1

Observation = tuple[float, bool]  # the depth of a pivot, and whether any of its branches succeeded


@dataclass(frozen=True)
class Logistic:
    """P(success | x) = 1 / (1 + exp(-(slope * x + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, x: float) -> float:
        """The chance at depth x."""
        return _sigmoid(self.slope * x + self.intercept)


def check_branch(record: Record) -> None:
    """Whether a record of `--history` is a scored branch; records of other streams only need well-typed columns."""
    check_columns(record)
    if record.get("stream", "main") != "branch":
        return
    where = record.where
    check_columns(record, ("pivot_id", "policy_step"), "give scored branches: rlvr resample, then rlvr verify")
    if record.get("depth") is None:
        raise RecordError(f"{where}: depth is missing: its pivot had none; leave such branches out of --history")
    if not 0 < record["depth"] <= 1:
        raise RecordError(f"{where}: depth is {record['depth']}, expected above 0 and at most 1; find the pivots again")
    check_judged(record)


def observations(records: Iterable[Record], threshold: float, latest: int = LATEST) -> list[Observation]:
    """One observation for each pivot with a judged branch: its depth, and whether any reward is above `threshold`.

    The branches of a pivot may be scattered over files. Only the `latest` pivots are kept: of the largest
    `policy_step`, and of equals those read last. Records that are no branches are left out. Memory grows with the
    pivots of all history: a hundred bytes or two for each.
    """
    pivots: dict[str, tuple[int, int, float, bool]] = {}
    for record in records:
        if record.get("stream", "main") != "branch" or "reward" not in record:
            continue
        name, success = record["pivot_id"], record["reward"] > threshold
        known = pivots.get(name)
        if known is None:
            pivots[name] = (record["policy_step"], len(pivots), record["depth"], success)
        elif success and not known[3]:
            pivots[name] = (*known[:3], True)
    return [(depth, success) for _, _, depth, success in sorted(pivots.values())[-latest:]]


def fit(seen: Iterable[Observation]) -> Logistic | None:
    """The logistic regression of success on depth; None (P = 1) until more than 10 observations hold both outcomes.

    Minimizes  slope² / 2 + Σ log(1 + exp(z)) − y z,  z = slope x + intercept: L2 with C = 1 on the slope, none on the
    intercept, which is scikit-learn's LogisticRegression(C=1). Newton's method with halved steps; with both outcomes
    there, the minimum is finite and unique, for separable outcomes or a constant x too.
    """
    counts = Counter(seen)
    total = counts.total()
    successes = sum(count for (_, success), count in counts.items() if success)
    if total <= ENOUGH or successes in (0, total):
        return None
    # by depth, in its order: the sums do not depend on the order of the observations
    rows = [(x, counts[x, False] + counts[x, True], counts[x, True]) for x in sorted({x for x, _ in counts})]
    slope, intercept = 0.0, math.log(successes / (total - successes))
    loss = _loss(rows, slope, intercept)
    for _ in range(100):
        by_slope, by_intercept, curve_ss, curve_si, curve_ii = _derivatives(rows, slope, intercept)
        determinant = curve_ss * curve_ii - curve_si**2
        step_slope = (curve_ii * by_slope - curve_si * by_intercept) / determinant
        step_intercept = (curve_ss * by_intercept - curve_si * by_slope) / determinant
        decrement = by_slope * step_slope + by_intercept * step_intercept  # twice what the step is to gain
        size, rounding = 1.0, 1e-12 * loss
        while (
            size > 1e-9
            and _loss(rows, slope - size * step_slope, intercept - size * step_intercept)
            > loss - 1e-4 * size * decrement + rounding
        ):
            size /= 2
        slope, intercept = slope - size * step_slope, intercept - size * step_intercept
        loss = _loss(rows, slope, intercept)
        if decrement <= 1e-14 * loss:  # after this step the error is of the order of its square
            break
    return Logistic(slope, intercept)


Rows = list[tuple[float, int, int]]  # depth, observations there, successes among them


def _loss(rows: Rows, slope: float, intercept: float) -> float:
    total = slope**2 / 2
    for x, n, successes in rows:
        z = slope * x + intercept
        total += n * (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) - successes * z
    return total


def _derivatives(rows: Rows, slope: float, intercept: float) -> tuple[float, float, float, float, float]:
    """The loss's first derivatives by slope and intercept, then the second ones: slope², both, intercept²."""
    by_slope, by_intercept = slope, 0.0
    curve_ss, curve_si, curve_ii = 1.0, 0.0, 0.0
    for x, n, successes in rows:
        p = _sigmoid(slope * x + intercept)
        by_slope += (n * p - successes) * x
        by_intercept += n * p - successes
        weight = n * p * (1 - p)
        curve_ss += weight * x * x
        curve_si += weight * x
        curve_ii += weight
    return by_slope, by_intercept, curve_ss, curve_si, curve_ii


def _sigmoid(z: float) -> float:
    if z >= 0:
        return 1 / (1 + math.exp(-z))
    return math.exp(z) / (1 + math.exp(z))
