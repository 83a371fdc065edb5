"""Comparisons in assertions that run in the program's own process, where an object may answer for itself.

A class of the program's may say that it equals everything, or is less than everything. It is believed against another
object of the same class only.
"""

import operator
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

_HEAP_TYPE = 1 << 9
_METHODS = {
    "Eq": ("__eq__", "__ne__"),
    "NotEq": ("__eq__", "__ne__"),
    "In": ("__eq__",),
    "NotIn": ("__eq__",),
    **dict.fromkeys(("Lt", "LtE", "Gt", "GtE"), ("__lt__", "__le__", "__gt__", "__ge__")),
}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda left, right: left in right,
    "NotIn": lambda left, right: left not in right,
}
_failed, _type, _getattr, _isinstance, _any, _modules = AssertionError, type, getattr, isinstance, any, sys.modules
_stdlib = sys.stdlib_module_names


def compare(name: str, left: Any, right: Any) -> Any:
    """The comparison of this name. Raises AssertionError where one side would answer for itself."""
    sides = (left,) if name in ("In", "NotIn") else (left, right)
    alike = _type(left) is _type(right)
    if name in ("In", "NotIn") and _isinstance(right, list | tuple | set | frozenset | dict):
        alike = _any(_type(item) is _type(left) for item in right)
    if not alike and _any(_answers(_type(side), _METHODS[name]) for side in sides):
        raise _failed("a class of the program's own was compared with something else")
    return _OPERATORS[name](left, right)


def _answers(kind: type, methods: tuple[str, ...]) -> bool:
    """Whether a type of the program's own decides such comparisons in code of its own."""
    if not kind.__flags__ & _HEAP_TYPE:
        return False
    module = kind.__module__
    if module.partition(".")[0] in _stdlib and module != "__main__":
        known = _getattr(_modules.get(module), kind.__name__, None)
        if known is kind:
            return False
    return _any(_isinstance(_getattr(kind, method, None), FunctionType) for method in methods)
