"""Shares of a batch by generation and operator: `--mix problems=0.2,drop-step=0.3,frontier=0.5`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record
from rlvr_cli.selection.history import History

Shares = Mapping[str, Fraction]

_FIXED = re.compile(r"frontier|children|problems|generation-(0|[1-9][0-9]*)")
_ROUNDING = Fraction(1, 100)  # three thirds are given as 0.33,0.33,0.33


def parse_mix(text: str) -> dict[str, Fraction]:
    """The shares by class, as they were named, scaled to a sum of exactly 1.

    Raises UsageError unless each share is above 0, no class is named twice, and the sum is 1 within 0.01.
    """
    shares: dict[str, Fraction] = {}
    for part in text.split(","):
        name, _, number = part.strip().rpartition("=")
        try:
            share = Fraction(repr(float(number)))  # what was typed, exactly: ties are ties
        except ValueError:
            share = Fraction(0)
        if not name or not 0 < share <= 1:
            raise UsageError(
                f"--mix has {part.strip()!r}, expected CLASS=SHARE with a share above 0 and at most 1, "
                "such as problems=0.5,children=0.5"
            )
        if name in shares:
            raise UsageError(f"--mix names {name} twice; give one share")
        shares[name] = share
    whole = sum(shares.values(), Fraction(0))
    if abs(whole - 1) > _ROUNDING:
        raise UsageError(f"the shares of --mix sum to {float(whole):g}, expected 1")
    return {name: share / whole for name, share in shares.items()}


def names_an_operator(name: str) -> bool:
    """Whether a class is the problems that one operator made: any name that has no fixed meaning."""
    return not _FIXED.fullmatch(name)


def classes_of(problems: Iterable[Record], shares: Shares, histories: Mapping[str, History]) -> dict[str, list[str]]:
    """The sorted problem_ids of each class of `shares`; a problem is in one class, the most specific that is named.

    From most to least specific: `frontier` (in the band, see `Last.outcome`), the operator that made it,
    `generation-N`, `children` (generation 1 or more), `problems` (generation 0 or absent). Classes that are not named
    get nothing.
    """
    classes: dict[str, list[str]] = {name: [] for name in shares}
    for record in problems:
        history = histories.get(record["problem_id"])
        fits = (name for name in _fitting(record, history) if name in shares)
        if (found := next(fits, None)) is not None:
            classes[found].append(record["problem_id"])
    return {name: sorted(members) for name, members in classes.items()}


def _fitting(record: Record, history: History | None) -> Iterable[str]:
    if history is not None and history.last.outcome == "in_band":
        yield "frontier"
    if names_an_operator(operator := record.get("operator", "problems")):
        yield operator
    generation = record.get("generation", 0)
    yield f"generation-{generation}"
    yield "children" if generation >= 1 else "problems"


def apportion(total: int, shares: Shares, room: Mapping[str, int] | None = None) -> dict[str, int]:
    """Whole slots by largest remainder (Hamilton's method); of equal remainders the class named first gets the slot.

    A class with `room` for no more than its slots gets its room, and what is left goes to the other classes in
    proportion to their shares. The sum is `total`, or the sum of the rooms where that is less.
    """
    slots: dict[str, int] = {}
    left, open_shares = total, dict(shares)
    while open_shares:
        dealt = _by_largest_remainder(left, open_shares)
        full = {name for name in dealt if room is not None and room[name] <= dealt[name]}
        if not full:
            slots |= dealt
            break
        for name in full:
            slots[name] = room[name] if room is not None else 0
            left -= slots[name]
            del open_shares[name]
    return {name: slots[name] for name in shares}


def _by_largest_remainder(total: int, shares: Shares) -> dict[str, int]:
    whole = sum(shares.values(), Fraction(0))
    quotas = {name: total * share / whole for name, share in shares.items()}
    slots = {name: int(quota) for name, quota in quotas.items()}
    remainders = sorted(quotas, key=lambda name: slots[name] - quotas[name])  # stable: the class named first
    for name in remainders[: total - sum(slots.values())]:
        slots[name] += 1
    return slots


def fill(batch: int, shares: Shares, *queues: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The front of each class's queue, by `apportion`; each further set of queues fills what those before it left."""
    taken: dict[str, list[str]] = {name: [] for name in shares}
    for waiting in queues:
        left = batch - sum(map(len, taken.values()))
        slots = apportion(left, shares, {name: len(waiting[name]) for name in shares})
        for name in shares:
            taken[name] += waiting[name][: slots[name]]
    return taken
