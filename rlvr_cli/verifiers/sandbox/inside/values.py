"""Values as data: what a program's expressions gave, written as JSON of built-in types only.

    null true false, strings, integers within 2**53, lists   as JSON has them
    {"i": "ff"} integer    {"f": "0x1.8p+1"} float    {"c": [re, im]} complex    {"b": "00ff"} bytes
    {"u": "..."} string with lone surrogates, as UTF-16    {"t": [...]} tuple    {"s": [...]} set
    {"d": [[key, value], ...]} dict    {"x": ["Fraction", "1/2"]}, {"x": ["Decimal", "0.5"]}
    {"o": "type"} anything else: equal to nothing

A subclass is written as the built-in that it holds, unless it has an equality of its own.
"""

import json
import sys
from typing import Any

DEEPEST = 200
LONGEST_TEXT = 200
_BASES = (int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict)
_dumps, _type, _len, _getattr, _isinstance = json.dumps, type, len, getattr, isinstance


def encode(value: object, depth: int = 0) -> Any:
    """The value as what JSON can hold; what is no data becomes {"o": its type's name}."""
    kind = _type(value)
    if value is None or kind is bool:
        return value
    base = _base(kind)
    if base is None or depth > DEEPEST:
        return _library(value, kind) or {"o": kind.__name__[:LONGEST_TEXT]}
    return _ENCODERS[base](value, depth + 1)


def _base(kind: type) -> type | None:
    """The built-in type that a value of this type is compared as; None when it is compared in a way of its own."""
    if kind in _BASES:
        return kind
    for base in kind.__mro__:
        if base in _BASES:
            equality: Any = kind.__eq__
            own = equality is base.__eq__ or (kind.__module__ == "collections" and kind.__name__ in _DICTS)
            return base if own else None
    return None


_DICTS = ("Counter", "OrderedDict", "defaultdict")


def _library(value: Any, kind: type) -> Any:
    if kind is _type({}.keys()):
        return {"s": [encode(item, 1) for item in value]}
    for module, name in (("fractions", "Fraction"), ("decimal", "Decimal")):
        if module in sys.modules and kind is _getattr(sys.modules[module], name, None):
            return {"x": [name, str(value)]}
    return None


def _int(value: int, depth: int) -> Any:
    value = int.__index__(value)
    return value if -(2**53) < value < 2**53 else {"i": f"{value:x}"}


def _str(value: str, depth: int) -> Any:
    value = str.__str__(value)
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"u": value.encode("utf-16-le", "surrogatepass").hex()}
    return value


def _dict(value: dict[Any, Any], depth: int) -> Any:
    return {"d": [[encode(key, depth), encode(item, depth)] for key, item in dict.items(value)]}


_ENCODERS: dict[type, Any] = {
    int: _int,
    float: lambda value, depth: {"f": float.hex(value)},
    complex: lambda value, depth: {"c": [float.hex(value.real), float.hex(value.imag)]},
    str: _str,
    bytes: lambda value, depth: {"b": bytes.hex(value)},
    bytearray: lambda value, depth: {"b": bytearray.hex(value)},
    list: lambda value, depth: [encode(item, depth) for item in list.__iter__(value)],
    tuple: lambda value, depth: {"t": [encode(item, depth) for item in tuple.__iter__(value)]},
    set: lambda value, depth: {"s": [encode(item, depth) for item in set.__iter__(value)]},
    frozenset: lambda value, depth: {"s": [encode(item, depth) for item in frozenset.__iter__(value)]},
    dict: _dict,
}


def listed(found: list[Any]) -> bytes:
    """The values of one test, to send."""
    return _dumps({"values": found}).encode()


def failure(bad: BaseException) -> bytes:
    """An exception, to send: its type's name and the beginning of its text."""
    name, text = "Exception", ""
    try:
        name = _type(bad).__name__[:LONGEST_TEXT]
        text = str(bad)[:LONGEST_TEXT]
    except BaseException:  # an exception can be made to raise when it is shown
        text = ""
    return _dumps({"failure": [str(name), str(text)]}).encode()
