"""Scored rollouts in, one row of statistics out for each problem, policy and sampling."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlvr_cli.difficulty.buckets import UNKNOWN, zero_then_equal
from rlvr_cli.difficulty.estimators import fit_beta, pass_at_k, signal_posterior, signal_unbiased, wilson_interval
from rlvr_cli.difficulty.summary import GROUP_SIZES, SAMPLING, setting
from rlvr_cli.errors import RecordError
from rlvr_cli.records import COLUMNS, Record, check_columns, problem_id
from rlvr_cli.training.advantages import group_signal

PROBLEM = (
    "prompt",
    "messages",
    "answer",
    "verifier",
    "source",
    "parent_id",
    "root_id",
    "generation",
    "operator",
)
POLICY = ("policy_id", "policy_step", "model", *SAMPLING)
COUNTED = ("rollouts", "branches", "duplicates", "unjudged", "groups_unfinished", "rows_unknown")
REMEDY = "run rlvr verify on it first"

Setting = tuple[Any, ...]


@dataclass(slots=True)
class _Group:
    """A group of rollouts, in little memory."""

    planned: int
    samples: int = 0  # bit i: the sample with index i was seen
    rewards: list[float] = field(default_factory=list)  # two of them, and two different ones if there are any

    def add(self, reward: float) -> None:
        if len(self.rewards) < 2:
            self.rewards.append(reward)
        elif self.rewards[0] == self.rewards[1]:
            self.rewards[1] = reward


@dataclass(slots=True)
class _Tally:
    """One row in the making."""

    where: str
    columns: dict[str, Any]
    extra: dict[str, Any]  # columns that rlvr does not know and on which all rollouts of the problem agree
    n: int = 0
    n_correct: int = 0
    n_unjudged: int = 0
    groups: dict[str | None, _Group] = field(default_factory=dict)


Tallies = dict[tuple[str, Setting], _Tally]


def check_scored(record: Record) -> None:
    """A scored rollout has a reward, or a verdict (or finish_reason) `error` that says why there is none."""
    reward = {"reward": record["reward"]} if "reward" in record else {}
    check_columns(Record(reward, record.where), remedy=REMEDY)
    check_columns(record)
    if "problem_id" not in record and "prompt" not in record and "messages" not in record:
        raise RecordError(f"{record.where}: problem_id is missing, and so is the prompt; give rollouts of rlvr rollout")
    if "reward" not in record and "error" not in (record.get("verdict"), record.get("finish_reason")):
        raise RecordError(f"{record.where}: reward is missing; {REMEDY}")
    if not 0 <= record.get("sample_index", 0) < 2**20:
        raise RecordError(f"{record.where}: sample_index is {record['sample_index']}, expected 0 to {2**20 - 1}")


def bucketize(
    records: Iterable[Record], base: Iterable[Record] | None = None, counts: Counter[str] | None = None
) -> Iterator[Record]:
    """One row for each problem, policy and sampling parameters, in first-seen order; memory grows with their number.

    Only main rollouts count (branches start from chosen states: their rate is not the problem's). A rollout without a
    reward is left out of `n` and is in `n_unjudged`; one that was read already (same group_id and sample_index) is
    left out altogether. Rollouts without a group_id are one group. A reward above 0 is a success, the complement of
    what exploration calls a failure. Columns of a row:

    - those of the problem, and any unknown scalar column on which all of the problem's rollouts agree;
    - `policy_id`, `policy_step`, `model` and the sampling parameters;
    - `n`, `n_correct`, `n_unjudged`, `pass_rate`, and its 95% Wilson interval `pass_rate_low`, `pass_rate_high`;
    - `groups`, and how many of them are `groups_mixed`, `groups_all_wrong`, `groups_all_right` (the others have equal
      partial rewards, or fewer than two judged rollouts), and `groups_unfinished`: fewer rollouts than `group_size`;
    - `pass_at_1`, `pass_at_2`, `pass_at_4`, ... up to n, unbiased;
    - `p_signal_2`, ..., `p_signal_256`: the chance that a group of that size is mixed. Up to `signal_exact_up_to` (n)
      they are unbiased estimates, beyond it posterior means under a Beta prior fitted to the policy's problems;
    - `bucket`, by `zero_then_equal` on the rows of `base`, else of `records`: of the policy and sampling with the
      smallest `policy_step` there (none is the largest), the first seen of equals. `unknown` where that has no judged
      rollout.

    Without a judged rollout (n = 0) a row has no rates and no chances. `counts` receives what was counted on the way,
    by the names in COUNTED.
    """
    counts = Counter() if counts is None else counts
    known = None if base is None else _fold(base, Counter())  # first: it is small, and what is wrong with it shows soon
    tallies = _fold(records, counts)
    buckets = zero_then_equal(_reference(tallies if known is None else known))
    outcomes: dict[Setting, list[tuple[int, int]]] = {}
    for (_, at), tally in tallies.items():
        outcomes.setdefault(at, []).append((tally.n, tally.n_correct))
    priors = {at: fit_beta(pairs) for at, pairs in outcomes.items()}
    for (problem, at), tally in tallies.items():
        bucket = buckets.get(problem, UNKNOWN)
        row = {
            "problem_id": problem,
            **tally.extra,
            **tally.columns,
            **_rates(tally),
            **_groups(tally),
            **_chances(tally, priors[at]),
            "bucket": bucket,
        }
        counts["rows_unknown"] += bucket == UNKNOWN
        counts["groups_unfinished"] += row["groups_unfinished"]
        yield Record(row, tally.where)


def _fold(records: Iterable[Record], counts: Counter[str]) -> Tallies:
    tallies: Tallies = {}
    for record in records:
        if record.get("stream", "main") == "branch":
            counts["branches"] += 1
            continue
        problem = problem_id(record)
        key = (problem, setting(record))
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = _opened(record)
        tally.extra = {name: value for name, value in tally.extra.items() if record.get(name) == value}
        if _first_time(record, tally):
            _count(record, tally, counts)
        else:
            counts["duplicates"] += 1
    return tallies


def _opened(record: Record) -> _Tally:
    known = {name: record[name] for name in (*PROBLEM, *POLICY) if name in record}
    extra = {name: value for name, value in record.items() if name not in COLUMNS and _is_scalar(value)}
    return _Tally(record.where, known, extra)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _first_time(record: Record, tally: _Tally) -> bool:
    """Whether this sample of its group is new; without both ids none is known again."""
    group = tally.groups.setdefault(record.get("group_id"), _Group(record.get("group_size", 0)))
    index = record.get("sample_index") if "group_id" in record else None
    bit = 1 << (group.samples.bit_length() if index is None else index)
    new = not group.samples & bit
    group.samples |= bit
    return new


def _count(record: Record, tally: _Tally, counts: Counter[str]) -> None:
    counts["rollouts"] += 1
    reward = record.get("reward")
    if reward is None:
        counts["unjudged"] += 1
        tally.n_unjudged += 1
        return
    tally.n += 1
    tally.n_correct += reward > 0
    tally.groups[record.get("group_id")].add(reward)


def _reference(tallies: Tallies) -> Mapping[str, tuple[int, int]]:
    """The (n, c) of each problem under the policy and sampling that set the buckets."""
    steps: dict[Setting, float] = {}
    for (_, at), tally in tallies.items():
        steps.setdefault(at, tally.columns.get("policy_step", float("inf")))
    if not steps:
        return {}
    base = min(steps, key=lambda at: steps[at])
    return {problem: (tally.n, tally.n_correct) for (problem, at), tally in tallies.items() if at == base}


def _rates(tally: _Tally) -> dict[str, Any]:
    rates: dict[str, Any] = {"n": tally.n, "n_correct": tally.n_correct, "n_unjudged": tally.n_unjudged}
    if tally.n:
        low, high = wilson_interval(tally.n, tally.n_correct)
        rates |= {"pass_rate": tally.n_correct / tally.n, "pass_rate_low": low, "pass_rate_high": high}
    return rates


def _groups(tally: _Tally) -> dict[str, int]:
    signals = Counter(group_signal(group.rewards) for group in tally.groups.values())
    return {
        "groups": len(tally.groups),
        "groups_mixed": signals["mixed"],
        "groups_all_wrong": signals["all_wrong"],
        "groups_all_right": signals["all_right"],
        "groups_unfinished": sum(group.samples.bit_count() < group.planned for group in tally.groups.values()),
    }


def _chances(tally: _Tally, prior: tuple[float, float]) -> dict[str, Any]:
    n, c = tally.n, tally.n_correct
    if not n:
        return {}
    sizes = [1 << power for power in range(n.bit_length())]
    passes = {f"pass_at_{k}": pass_at_k(n, c, k) for k in sizes}
    signals = {
        f"p_signal_{k}": signal_unbiased(n, c, k) if k <= n else signal_posterior(n, c, k, *prior) for k in GROUP_SIZES
    }
    return passes | signals | {"signal_exact_up_to": n}
