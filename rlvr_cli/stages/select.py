"""The batch of step T: which problems get the next rollouts, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_problem, problem_id
from rlvr_cli.selection.history import mastered, read_history
from rlvr_cli.selection.methods import DEFAULT, METHODS, Evidence, Tuning
from rlvr_cli.selection.mix import Shares, classes_of


@dataclass
class Pool:
    """What there was to choose from: problems by outcome of their last row, `untried` too, and by class of the mix."""

    outcomes: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)


def check_choosable(record: Record) -> None:
    """A problem, and no row of statistics: those hold the problem's columns too."""
    check_problem(record)
    if "n_correct" in record:
        raise RecordError(f"{record.where}: is a row of statistics; give it as --stats, and the problems as input")


def select(
    problems: Iterable[Record],
    *,
    step: int,
    batch: int,
    method: str,
    seed: int,
    stats: Iterable[Record] = (),
    mix: Shares | None = None,
    tuning: Tuning = DEFAULT,
    pool: Pool | None = None,
) -> Iterator[Record]:
    """The problems of step `step` (from 0), each with the `select_reason` it was taken for.

    The answer depends on the set of problems, not on their order. A batch larger than the set is the whole set (but
    for the cap of `never-give-up`). What each method does stands at the function of its name in selection/methods.py.

    With a `mix` (`parse_mix`) the slots of the batch go to classes of problems (`classes_of`) by their shares, what a
    class cannot fill goes to the others (`apportion`), and within a class the method chooses. The reason is
    `METHOD: why`, and `CLASS/METHOD: why` with a mix. `pool` is counted into.

    Raises RecordError for a problem_id that is there twice.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}, expected one of {', '.join(METHODS)}")
    known = _by_id(problems)
    batch = min(batch, len(known))
    if not batch:
        return
    histories = read_history(stats)
    evidence = Evidence(step, seed, histories, mastered(known.values(), histories, tuning.mastery), tuning)
    shares = {"": Fraction(1)} if mix is None else mix
    classes = {"": sorted(known)} if mix is None else classes_of(known.values(), mix, histories)
    if pool is not None:
        pool.classes.update({name: len(members) for name, members in classes.items()})
        pool.outcomes.update((name in histories and histories[name].last.outcome) or "untried" for name in known)
    chosen = METHODS[method](classes, shares, batch, evidence)
    for group, picked in chosen.items():
        label = f"{group}/{method}" if group else method
        for name, why in picked:
            yield known[name].extended(select_reason=f"{label}: {why}")


def _by_id(problems: Iterable[Record]) -> dict[str, Record]:
    known: dict[str, Record] = {}
    for record in problems:
        name = problem_id(record)
        if name in known:
            raise RecordError(
                f"{record.where}: problem_id {name} stands at {known[name].where} already; "
                "run rlvr convert --drop-duplicates on it first"
            )
        known[name] = record.extended(problem_id=name)
    return known
