"""What the rows of statistics (`rlvr bucketize`) tell of each problem's past."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from rlvr_cli.difficulty.summary import setting
from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns

Row = Mapping[str, Any]
Outcome = Literal["too_hard", "in_band", "too_easy"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Last:
    """The latest statistics of a problem: `step` is the policy's, -1 where the row does not say.

    `mixed`: one group at least had rewards that differ.
    """

    step: int
    n: int
    n_correct: int
    mixed: bool

    @property
    def outcome(self) -> Outcome | None:
        """Where the problem lies for the policy; None when nothing was judged.

        `too_hard`: nothing succeeded, `too_easy`: all did, and no partial reward made a difference. Anything else is
        `in_band`, one group all wrong and another all right too: the next group can well be mixed.
        """
        if not self.n:
            return None
        if not self.mixed and self.n_correct in (0, self.n):
            return "too_easy" if self.n_correct else "too_hard"
        return "in_band"


@dataclass(slots=True)
class History:
    """What all rows say of one problem.

    `counts` holds (n, n_correct) under each (policy_step, policy and sampling). Rollouts that were counted twice must
    not weigh twice, and a row cannot say which rollouts are in it: of the rows of one key (a file named twice, a part
    beside the whole) the one with most rollouts stands for all, and the later one of equals.
    """

    last: Last
    solved: bool = False  # a success in any row
    counts: dict[tuple[Any, ...], tuple[int, int]] = field(default_factory=dict)

    def tried(self) -> int:
        """How many judged rollouts there were."""
        return sum(n for n, _ in self.counts.values())

    def decayed(self, step: int, half_life: float) -> tuple[float, float]:
        """Successes and failures, each row weighted by 2^(-age / half_life); age = step - policy_step, at least 0."""
        right = wrong = 0.0
        for (at, *_), (n, c) in self.counts.items():
            weight = 0.5 ** (max(0, step - at) / half_life)
            right += weight * c
            wrong += weight * (n - c)
        return right, wrong


def check_stats(record: Record) -> None:
    """A row of statistics, as `rlvr bucketize` writes them."""
    check_columns(record, required=("problem_id", "n", "n_correct"), remedy="give the output of rlvr bucketize")
    mixed = record.get("groups_mixed", 0)
    if type(mixed) is not int or not 0 <= record["n_correct"] <= record["n"]:
        raise RecordError(
            f"{record.where}: n, n_correct and groups_mixed are no counts; give the output of rlvr bucketize"
        )


def read_history(stats: Iterable[Row]) -> dict[str, History]:
    """The history of each problem_id. `last` is of the largest `policy_step`, and the later one of equals."""
    found: dict[str, History] = {}
    for row in stats:
        step, n, n_correct = row.get("policy_step", -1), row["n"], row["n_correct"]
        # partial rewards can differ where all count as correct, so a count of mixed groups says more
        mixed = row.get("groups_mixed", int(0 < n_correct < n)) > 0
        last = Last(step, n, n_correct, mixed)
        history = found.setdefault(row["problem_id"], History(last))
        if step >= history.last.step:
            history.last = last
        history.solved |= n_correct > 0
        key = (step, *setting(row))
        if n >= history.counts.get(key, (0, 0))[0]:
            history.counts[key] = n, n_correct
    return found


def latest(stats: Iterable[Row]) -> dict[str, Last]:
    """The last row of each problem: of the largest `policy_step`, and the later one of equals."""
    return {name: history.last for name, history in read_history(stats).items()}


def mastered(problems: Iterable[Record], histories: Mapping[str, History], threshold: float) -> dict[str, int]:
    """The problems to try again because their children are mastered, and how many children that were measured.

    Such a problem was too hard at its last try, and every measured child (a problem with its id as `parent_id`, at
    least one) has a last pass rate of `threshold` or more, from a policy no older than the one that failed: so a
    problem that fails again waits until its children were measured once more.
    """
    children: dict[str, list[Last]] = {}
    for record in problems:
        if "parent_id" not in record:
            continue
        parent, child = histories.get(record["parent_id"]), histories.get(record["problem_id"])
        if parent is not None and parent.last.outcome == "too_hard" and child is not None and child.last.n:
            children.setdefault(record["parent_id"], []).append(child.last)
    return {
        parent: len(measured)
        for parent, measured in children.items()
        if all(
            child.step >= histories[parent].last.step and child.n_correct >= threshold * child.n for child in measured
        )
    }
