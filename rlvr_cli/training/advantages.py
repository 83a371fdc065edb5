"""Advantages of one group, and what the group can teach.

A group is the rollouts that share a baseline: main rollouts of one problem under one policy, or the branches of one
pivot. K is its size, r its rewards.
"""

import math
from collections.abc import Sequence

KINDS = ("dr-grpo", "grpo", "rloo")
SIGNALS = ("mixed", "all_wrong", "all_right", "constant", "unjudged")


def advantages(rewards: Sequence[float], kind: str = "dr-grpo", epsilon: float = 1e-6) -> list[float]:
    """One advantage for each reward of a group, in order.

    `dr-grpo` (arXiv 2503.20783): A_i = r_i - mean(r).
    `grpo` (arXiv 2402.03300): A_i = (r_i - mean(r)) / (std(r) + epsilon), std with ddof = 1; epsilon is used here only.
    `rloo` (arXiv 2402.14740): A_i = r_i - mean of the others = K / (K - 1) * (r_i - mean(r)).

    A group whose rewards are all equal, one of a single rollout included, has advantages of exactly 0: the rounding of
    a mean must not become a signal that `grpo` would then divide by epsilon. Raises ValueError for an unknown kind.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind of advantage {kind!r}, expected one of {', '.join(KINDS)}")
    if _all_equal(rewards):
        return [0.0] * len(rewards)
    size = len(rewards)
    mean = math.fsum(rewards) / size
    centred = [reward - mean for reward in rewards]
    match kind:
        case "grpo":
            std = math.sqrt(math.fsum(value * value for value in centred) / (size - 1))
            return [value / (std + epsilon) for value in centred]
        case "rloo":
            return [size / (size - 1) * value for value in centred]
        case _:
            return centred


def group_signal(rewards: Sequence[float | None]) -> str:
    """What a group can teach, by its rewards alone, before any shaping; None is a rollout that could not be judged.

    `unjudged`: fewer than two judged rollouts. `mixed`: two judged rewards differ; the only kind with a gradient.
    Otherwise all judged rewards are equal, and their one value says which: at most 0 is `all_wrong`, at least 1 is
    `all_right`, and a score in between, the same partial credit for everyone, is `constant`.
    Rewards are compared exactly: a standard deviation above some small number is rounding noise as often as signal.
    """
    judged = [reward for reward in rewards if reward is not None]
    if len(judged) < 2:
        return "unjudged"
    if not _all_equal(judged):
        return "mixed"
    if judged[0] <= 0:
        return "all_wrong"
    return "all_right" if judged[0] >= 1 else "constant"


def _all_equal(values: Sequence[float]) -> bool:
    return all(value == values[0] for value in values)
