"""What an answer made of closed numbers is: a number, a tuple, an interval, a set, a list, a union, a matrix."""

from dataclasses import dataclass

from rlvr_cli.verifiers import closed_numbers as numbers
from rlvr_cli.verifiers.closed_numbers import Closed


@dataclass(frozen=True)
class Shape:
    """What an answer is: a `number`, or items of a `(` tuple or interval, a `{` set, a list, a union, a matrix.

    kind: `number`, the brackets (`()`, `(]`, ...), `{}`, `list`, `union`, or `matrix RxC`.
    """

    kind: str
    items: tuple["Shape", ...] = ()
    number: Closed | None = None  # None of a `number` is infinity
    infinite: int = 0


def same(one: Shape, other: Shape) -> bool | None:
    """Whether two answers are equal; None where that is not certain."""
    if one.kind != other.kind:
        return False if _one_and_many(one, other) or _one_and_many(other, one) else None
    if one.kind == "number":
        if one.infinite or other.infinite:
            return one.infinite == other.infinite
        assert one.number is not None
        assert other.number is not None
        return numbers.same(one.number, other.number)
    if len(one.items) != len(other.items):
        return None if one.kind != "()" or min(len(one.items), len(other.items)) < 3 else False
    if one.kind in ("{}", "list", "union"):
        return _same_in_any_order(one.items, other.items)
    equal = [same(mine, yours) for mine, yours in zip(one.items, other.items, strict=True)]
    return False if False in equal else None if None in equal else True


def _one_and_many(one: Shape, many: Shape) -> bool:
    """Whether one is a number, and the other holds two that differ."""
    if one.kind != "number" or many.kind == "number":
        return False
    items = many.items[0].items if many.kind == "union" else many.items
    return len(items) > 1 and same(items[0], items[1]) is False


def _same_in_any_order(ones: tuple[Shape, ...], others: tuple[Shape, ...]) -> bool | None:
    """Whether each item has its own equal; not when one has none among the others."""
    left = list(others)
    for one in ones:
        equal = [same(one, other) for other in left]
        if True in equal:
            del left[equal.index(True)]
        elif None in equal or any(same(one, other) is not False for other in others):
            return None  # an item that is there twice
        else:
            return False if one.kind == "number" else None
    return True
