"""Choose deep, recoverable states in failed rollouts (Deep Dense Exploration, arXiv 2602.14169, steps 1 to 4)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rlvr_cli.errors import RecordError
from rlvr_cli.exploration.pivots import Pivot, Worth, candidates, draw
from rlvr_cli.exploration.segments import Segments
from rlvr_cli.records import Record, check_columns, derived_seed, stable_hash

REQUIRED = (
    "group_id",
    "rollout_id",
    "policy_id",
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

    def candidates(self, record: Record) -> list[Pivot]:
        """The states of a failed rollout that may be drawn. Raises RecordError."""
        return candidates(record, self.segments.ends(record), self.worth)


@dataclass(frozen=True)
class Checker:
    """Checks scored rollouts; `places` says where each failure was first seen."""

    plan: Plan
    places: dict[str, str] = field(default_factory=dict)

    def check(self, record: Record) -> None:
        """Raise RecordError for what is no scored rollout, cannot be cut, or failed before under the same id.

        Of branches, which are left out, only the types of the columns are checked.
        """
        check_columns(record)
        if _is_branch(record):
            return
        check_columns(record, REQUIRED, "find-pivots reads scored rollouts: rlvr rollout, then rlvr verify")
        where = record.where
        if "verdict" not in record:
            raise RecordError(f"{where}: verdict is missing; run rlvr verify on it first")
        if "reward" not in record and record["verdict"] != "error":
            raise RecordError(f"{where}: reward is missing; run rlvr verify on it first")
        if record.get("tokens_exact") is False:
            raise RecordError(f"{where}: tokens_exact is false; sample with an engine that returns token ids")
        tokens, logprobs = len(record["completion_token_ids"]), len(record["logprobs"])
        if tokens != logprobs:
            raise RecordError(f"{where}: {tokens} completion_token_ids and {logprobs} logprobs; sample again")
        if not is_failure(record, self.plan.threshold):
            return
        self.plan.candidates(record)
        name = record["rollout_id"]
        if name in self.places:  # its branches would be sampled with the same seeds, under the same ids
            raise RecordError(
                f"{where}: rollout_id {name} stands at {self.places[name]} already; is a file named twice?"
            )
        self.places[name] = where


def is_failure(record: Record, threshold: float) -> bool:
    """Whether a rollout was judged and its reward is not above the threshold."""
    return "reward" in record and bool(record["reward"] <= threshold)


@dataclass(frozen=True)
class _Failure:
    record: Record
    choices: list[Pivot]


@dataclass
class _Group:
    seen: int = 0
    planned: int = 0  # 0 where the records do not say
    failures: list[_Failure] = field(default_factory=list)


def find_pivots(records: Iterable[Record], plan: Plan, counts: Counter[str] | None = None) -> Iterator[Record]:
    """Yield the failed main rollouts, once for each pivot drawn, with its columns.

    The columns are `pivot_id`, `prefix_len`, `depth`, `recoverability` and `utility`. What is drawn from a rollout
    depends on its `rollout_id` and the seed alone: neither order nor shards change it. With `plan.per_group` a group's
    pivots come when all `group_size` rollouts of it have been read, in the order of their rollouts; what is held until
    then are the failures of groups that are not whole yet. `counts` receives what was counted, by the names in COUNTED.

    Raises RecordError, with `plan.per_group`, for a group with more rollouts than its `group_size`.
    """
    counts = Counter() if counts is None else counts
    open_groups: dict[str, _Group] = {}
    whole: set[str] = set()
    for record in records:
        if _is_branch(record):
            counts["branches"] += 1
            continue
        failure = _failure(record, plan, counts)
        name = record["group_id"]
        if name in whole:
            raise RecordError(
                f"{record.where}: group_id {name} has more rollouts than its group_size; is a file named twice? "
                "without --per-group groups do not matter"
            )
        group = open_groups.setdefault(name, _Group(planned=record.get("group_size", 0)))
        group.seen += 1
        if failure and plan.per_group:
            group.failures.append(failure)
        elif failure:
            yield from _drawn(failure, plan, counts)
        if group.seen == group.planned:
            yield from _budgeted(open_groups.pop(name), plan, counts)
            if plan.per_group:
                whole.add(name)
    for group in open_groups.values():
        counts["groups_unfinished"] += group.seen < group.planned
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
    """The pivots of at most `plan.per_group` of the group's failures, the smallest by a derived seed."""

    def rank(failure: _Failure) -> tuple[int, str]:
        name = failure.record["rollout_id"]
        return derived_seed("pivot-budget", plan.seed, name), name

    kept = set(map(rank, sorted(group.failures, key=rank)[: plan.per_group]))
    for failure in group.failures:
        if rank(failure) in kept:
            yield from _drawn(failure, plan, counts)


def _drawn(failure: _Failure, plan: Plan, counts: Counter[str]) -> Iterator[Record]:
    record = failure.record
    seed = derived_seed("pivot", plan.seed, record["rollout_id"])
    for pivot in draw(failure.choices, plan.pivots_per_rollout, seed):
        counts["pivots"] += 1
        yield record.extended(
            pivot_id=stable_hash(record["rollout_id"], pivot.prefix_len, record["policy_id"], record["policy_step"]),
            prefix_len=pivot.prefix_len,
            depth=pivot.depth,
            recoverability=pivot.recoverability,
            utility=pivot.utility,
        )
