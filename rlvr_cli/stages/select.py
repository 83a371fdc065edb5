"""The batch of step T: which problems get the next rollouts, and why."""

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns, check_problem, derived_seed, problem_id

METHODS = ("uniform", "frontier")


@dataclass(frozen=True)
class Last:
    """The latest statistics of a problem: `step` is the policy's, -1 where the row does not say."""

    step: int
    n: int
    n_correct: int
    mixed: bool


def check_choosable(record: Record) -> None:
    """A problem, and no row of statistics: those hold the problem's columns too."""
    check_problem(record)
    if "n_correct" in record:
        raise RecordError(f"{record.where}: is a row of statistics; give it as --stats, and the problems as input")


def check_stats(record: Record) -> None:
    """A row of statistics, as `rlvr bucketize` writes them."""
    check_columns(record, required=("problem_id", "n", "n_correct"), remedy="give the output of rlvr bucketize")
    mixed = record.get("groups_mixed", 0)
    if type(mixed) is not int or not 0 <= record["n_correct"] <= record["n"]:
        raise RecordError(
            f"{record.where}: n, n_correct and groups_mixed are no counts; give the output of rlvr bucketize"
        )


def select(
    problems: Iterable[Record], *, step: int, batch: int, method: str, seed: int, stats: Iterable[Record] = ()
) -> Iterator[Record]:
    """The problems of step `step` (from 0), each with the `select_reason` it was taken for.

    The answer depends on the set of problems, not on their order. A batch larger than the set is the whole set.

    `uniform`: each epoch is a permutation of the set, and step T takes the places [T * batch, (T+1) * batch) of all
    epochs in a row, see `uniform_batch`.
    `frontier`: first the problems whose last group was mixed, then the others; within both, those tried least recently
    come first, the untried before all, and ties fall in an order derived from (seed, step). The last group is the row
    of `stats` with the largest `policy_step`, the later one of equals.

    Raises RecordError for a problem_id that is there twice.
    """
    known = _by_id(problems)
    batch = min(batch, len(known))
    if not batch:
        return
    names = sorted(known)
    match method:
        case "uniform":
            chosen = uniform_batch(names, step, batch, seed)
        case "frontier":
            chosen = _frontier_batch(names, step, batch, seed, latest(stats))
        case _:
            raise ValueError(f"unknown method {method!r}, expected one of {', '.join(METHODS)}")
    for name, reason in chosen:
        yield known[name].extended(problem_id=name, select_reason=reason)


def _by_id(problems: Iterable[Record]) -> dict[str, Record]:
    known: dict[str, Record] = {}
    for record in problems:
        name = problem_id(record)
        if name in known:
            raise RecordError(
                f"{record.where}: problem_id {name} stands at {known[name].where} already; "
                "run rlvr convert --drop-duplicates on it first"
            )
        known[name] = record
    return known


def uniform_batch(names: list[str], step: int, batch: int, seed: int) -> list[tuple[str, str]]:
    """The (problem_id, reason) of one step, without replacement, an epoch at a time; 1 <= batch <= len(names).

    A batch that crosses the border of two epochs must not hold a problem twice. So the next epoch begins with the
    first problems of its permutation that the batch does not hold yet; the ones passed over come right after them, in
    their order. Every epoch stays a permutation. Each depends in this way on the end of the one before, so they
    are made in turn, from the last border that fell between two batches.
    """
    size = len(names)
    first, last = step * batch // size, ((step + 1) * batch - 1) // size
    aligned = batch // math.gcd(size, batch)  # epochs from one border between batches to the next
    orders: dict[int, list[str]] = {}
    for epoch in range(first - first % aligned, last + 1):
        order = list(names)
        random.Random(derived_seed("select", seed, "epoch", epoch)).shuffle(order)
        started = epoch * size % batch  # how much of the batch in progress the last epoch gave
        if started:
            order = _apart(order, set(orders[epoch - 1][-started:]), batch - started)
        orders = {key: orders[key] for key in orders if key == epoch - 1} | {epoch: order}
    places = range(step * batch, (step + 1) * batch)
    return [(orders[place // size][place % size], f"uniform: epoch {place // size}") for place in places]


def _apart(order: list[str], held: set[str], count: int) -> list[str]:
    """The order with `count` problems that are not held drawn to the front."""
    front = [name for name in order if name not in held][:count]
    taken = set(front)
    return front + [name for name in order if name not in taken]


def latest(stats: Iterable[Record]) -> dict[str, Last]:
    """The last row of each problem: of the largest `policy_step`, and the later one of equals."""
    found: dict[str, Last] = {}
    for row in stats:
        step = row.get("policy_step", -1)
        name = row["problem_id"]
        if name not in found or step >= found[name].step:
            n, n_correct = row["n"], row["n_correct"]
            # partial rewards can differ where all count as correct, so a count of mixed groups says more
            mixed = row.get("groups_mixed", int(0 < n_correct < n)) > 0
            found[name] = Last(step, n, n_correct, mixed)
    return found


def _frontier_batch(names: list[str], step: int, batch: int, seed: int, last: dict[str, Last]) -> list[tuple[str, str]]:
    order = list(names)
    random.Random(derived_seed("select", seed, "frontier", step)).shuffle(order)

    def urgency(name: str) -> tuple[bool, float]:
        tried = last.get(name)
        return (False, tried.step) if tried and tried.mixed else (True, tried.step if tried else -math.inf)

    return [(name, f"frontier: {_why(last.get(name))}") for name in sorted(order, key=urgency)[:batch]]


def _why(last: Last | None) -> str:
    if last is None:
        return "untried"
    when = f"at step {last.step}" if last.step >= 0 else "at an unknown step"
    return f"last group mixed {when} ({last.n_correct}/{last.n})" if last.mixed else f"last tried {when}"
