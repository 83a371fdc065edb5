"""Choose deep, recoverable states in failed rollouts (Deep Dense Exploration, arXiv 2602.14169, steps 1 to 4)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rlvr_cli.checks import check_exact, check_judged, claim
from rlvr_cli.exploration.pivots import Pivot, Worth, candidates, draw
from rlvr_cli.exploration.segments import Segments
from rlvr_cli.records import Record, check_columns, derived_seed, pivot_id

REQUIRED = (
    "group_id",
    "rollout_id",
    "policy_step",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "finish_reason",
    "max_tokens",
)
COUNTED = (
    "rollouts",
    "branches",
    "unjudged",
    "failures",
    "candidates",
    "failures_without_candidate",
    "pivots",
    "groups_unfinished",
    "groups_oversized",
)


@dataclass(frozen=True)
class Plan:
    """How pivots are found: where completions are cut, what a state is worth, and how many are drawn.

    `per_group` bounds how many failures of a group get pivots; 0 is no bound.
    """

    segments: Segments
    worth: Worth
    threshold: float = 0.0
    pivots_per_rollout: int = 1
    per_group: int = 0
    seed: int = 0

    def check(self, record: Record) -> None:
        """Raise RecordError where `candidates` would; only scores need the completion cut for that."""
        if self.worth.score_column is None:
            self.segments.check(record)
        else:
            self.candidates(record)

    def candidates(self, record: Record) -> list[Pivot]:
        """The states of a failed rollout that may be drawn. Raises RecordError."""
        return candidates(record, self.segments.ends(record), self.worth)


@dataclass(frozen=True)
class Checker:
    """Checks scored rollouts; `places` says where each was first seen."""

    plan: Plan
    places: dict[str, str] = field(default_factory=dict)

    def check(self, record: Record) -> None:
        """Raise RecordError for what is no scored rollout, failed and cannot be cut, or was there before.

        Of branches, which are left out, only the types of the columns are checked.
        """
        check_columns(record)
        if _is_branch(record):
            return
        check_columns(record, REQUIRED, "find-pivots reads scored rollouts: rlvr rollout, then rlvr verify")
        check_judged(record)
        check_exact(record)
        if is_failure(record, self.plan.threshold):
            self.plan.check(record)
        # branches of the same failure twice would be sampled with the same seeds, under the same ids
        claim(self.places, record, "rollout_id", record["rollout_id"], "is a file named twice?")


def is_failure(record: Record, threshold: float) -> bool:
    """Whether a rollout was judged and its reward is not above the threshold."""
    return "reward" in record and bool(record["reward"] <= threshold)


@dataclass(frozen=True)
class _Failure:
    record: Record
    choices: list[Pivot]


@dataclass(slots=True)
class _Group:
    planned: int  # 0 where the records do not say
    seen: int = 0
    failures: list[_Failure] = field(default_factory=list)

    @property
    def oversized(self) -> bool:
        return 0 < self.planned < self.seen


def find_pivots(records: Iterable[Record], plan: Plan, counts: Counter[str] | None = None) -> Iterator[Record]:
    """Yield the failed main rollouts, once for each pivot drawn, with its columns.

    The columns are `pivot_id`, `prefix_len`, `depth`, `recoverability` and `utility`. What is drawn from a rollout
    depends on its `rollout_id` and the seed alone: neither order nor shards change it. With `plan.per_group` a group's
    pivots come when all `group_size` rollouts of it have been read, in the order of their rollouts; what is held until
    then are the failures of groups that are not whole yet, and to the end two numbers for each group. What a group has
    beyond its `group_size` comes too late for that, and gets no pivot. `counts` receives what was counted, by the names
    in COUNTED.
    """
    counts = Counter() if counts is None else counts
    groups: dict[str, _Group] = {}
    for record in records:
        if _is_branch(record):
            counts["branches"] += 1
            continue
        failure = _failure(record, plan, counts)
        group = groups.setdefault(record["group_id"], _Group(planned=record.get("group_size", 0)))
        group.seen += 1
        if failure and not plan.per_group:
            yield from _drawn(failure, plan, counts)
        elif failure and not group.oversized:
            group.failures.append(failure)
        if plan.per_group and group.seen == group.planned:
            yield from _budgeted(group, plan, counts)
    for group in groups.values():
        counts["groups_unfinished"] += group.seen < group.planned
        counts["groups_oversized"] += group.oversized
        if group.failures:
            yield from _budgeted(group, plan, counts)


def _is_branch(record: Record) -> bool:
    stream: str = record.get("stream", "main")
    return stream == "branch"


def _failure(record: Record, plan: Plan, counts: Counter[str]) -> _Failure | None:
    """A failed rollout that a pivot can be drawn from."""
    counts["rollouts"] += 1
    counts["unjudged"] += "reward" not in record
    if not is_failure(record, plan.threshold):
        return None
    choices = plan.candidates(record)
    counts["failures"] += 1
    counts["candidates"] += len(choices)
    counts["failures_without_candidate"] += not choices
    return _Failure(record, choices) if choices else None


def _budgeted(group: _Group, plan: Plan, counts: Counter[str]) -> Iterator[Record]:
    """The pivots of at most `plan.per_group` of a group's failures, the smallest by a derived seed; none waits on."""

    def rank(failure: _Failure) -> tuple[int, str]:
        name = failure.record["rollout_id"]
        return derived_seed("pivot-budget", plan.seed, name), name

    kept = set(map(rank, sorted(group.failures, key=rank)[: plan.per_group]))
    waiting, group.failures = group.failures, []
    for failure in waiting:
        if rank(failure) in kept:
            yield from _drawn(failure, plan, counts)


def _drawn(failure: _Failure, plan: Plan, counts: Counter[str]) -> Iterator[Record]:
    record = failure.record
    seed = derived_seed("pivot", plan.seed, record["rollout_id"])
    for pivot in draw(failure.choices, plan.pivots_per_rollout, seed):
        counts["pivots"] += 1
        yield record.extended(
            pivot_id=pivot_id(record["rollout_id"], pivot.prefix_len, record.get("policy_id"), record["policy_step"]),
            prefix_len=pivot.prefix_len,
            depth=pivot.depth,
            recoverability=pivot.recoverability,
            utility=pivot.utility,
        )
