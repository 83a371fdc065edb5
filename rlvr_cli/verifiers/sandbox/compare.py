"""What came out of a sandbox against what was expected, in a process that the program has never been in.

Values are decoded from data to exact built-in types and compared as Python compares these: `1 == 1.0 == True`, tuples
are no lists, NaN equals nothing. Printed text is compared line by line; white space at the ends of lines and empty
lines at the end do not count, everything else does: 3.0 is not 3.
"""

import ast
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import orjson

from rlvr_cli.verifiers.sandbox.assertions import HOLE, OUTSIDE_MATH, TYPES, Test

LARGEST_BITS = 100_000  # of integers that are multiplied or raised
_ALIKE = 200  # elements of a set or dict that may have one hash: more are made to waste time


class ValueProblem(Exception):  # noqa: N818
    """A value that cannot be judged as asked; the text says why. The test has failed."""


class Opaque:
    """Something that is no plain data. All that can be said of it is that it is not None."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        raise ValueProblem(f"a {self.name} is no plain data")

    def __bool__(self) -> bool:
        raise ValueProblem(f"a {self.name} is no plain data")

    def __repr__(self) -> str:
        return f"<{self.name}>"


def decode(data: bytes) -> list[Any]:
    """The values of one test, from what inside/values.py wrote, or something else did. Raises ValueProblem."""
    try:
        message = orjson.loads(data)
        return [_value(item) for item in message["values"]]
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, ArithmeticError) as bad:
        raise ValueProblem(f"its value is no data ({type(bad).__name__})") from bad


def _value(item: Any) -> Any:
    if isinstance(item, list):
        return [_value(part) for part in item]
    if not isinstance(item, dict):
        return item
    ((tag, content),) = item.items()
    return _DECODERS[tag](content)


def _elements(items: list[Any]) -> list[Any]:
    """Elements to put in a set or dict, unless so many share one hash that building it would take for ever."""
    elements = [_value(item) for item in items]
    hashes = sorted(hash(element) for element in elements)
    if any(low == high for low, high in zip(hashes, hashes[_ALIKE:], strict=False)):
        raise ValueError("elements that were made to collide")
    return elements


def _dict(pairs: list[list[Any]]) -> dict[Any, Any]:
    return dict(zip(_elements([key for key, _ in pairs]), [_value(value) for _, value in pairs], strict=True))


def _library(content: list[Any]) -> Any:
    name, text = content
    if len(text) > 1000:
        raise ValueError("a long number")
    if name == "Fraction":
        numerator, _, denominator = text.partition("/")
        return Fraction(int(numerator), int(denominator or "1"))
    if name != "Decimal":
        raise ValueError("an unknown type")
    number = Decimal(text)
    if abs(number.adjusted()) > 1000:
        raise ValueError("a large exponent")
    return number


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "i": lambda text: int(text, 16),
    "f": float.fromhex,
    "c": lambda parts: complex(float.fromhex(parts[0]), float.fromhex(parts[1])),
    "b": bytes.fromhex,
    "u": lambda text: bytes.fromhex(text).decode("utf-16-le", "surrogatepass"),
    "t": lambda items: tuple(_value(item) for item in items),
    "s": lambda items: set(_elements(items)),
    "d": _dict,
    "x": _library,
    "o": lambda name: Opaque(str(name)[:100]),
}


def check(test: Test, values: list[Any]) -> tuple[str | None, bool]:
    """Why the values do not pass the test, None when they do; and whether that was decided in process."""
    expected = sum(kind != "run" for kind, _ in test.steps)
    if len(values) != expected:
        return f"{len(values)} values came back instead of {expected}", test.in_process
    in_process = test.in_process
    for one in test.checks:
        if one.fallback is not None and any(isinstance(values[hole], Opaque) for hole in one.holes):
            in_process = True
            if values[one.fallback] is not True:
                return "the assertion does not hold", in_process
            continue
        reason = _problem(one.expression, values)
        if reason is not None:
            return reason, in_process
    return None, in_process


def _problem(expression: ast.expr, values: list[Any]) -> str | None:
    try:
        return None if _evaluate(expression, values) else _shown(expression, values)
    except ValueProblem as bad:
        return str(bad)
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as bad:
        return f"{type(bad).__name__}: {bad}"[:300]


def _shown(expression: ast.expr, values: list[Any]) -> str:
    """A check that fails, with the values in its holes, cut to a line."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if not node.id.startswith(HOLE):
                return node
            return ast.Name(short(values[int(node.id.removeprefix(HOLE))]), node.ctx)

    text = ast.unparse(Filled().visit(ast.parse(ast.unparse(expression), mode="eval")))
    return f"not true: {text}"[:300]


def short(value: Any) -> str:
    """A value as a message shows it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of many digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= 100 else text[:100] + "..."


def _evaluate(node: ast.expr, values: list[Any]) -> Any:
    """An expression of the test's owner, with the program's values in its holes."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name.startswith(HOLE):
            return values[int(name.removeprefix(HOLE))]
        case ast.Name(id=name) if name in TYPES:
            return _BUILTINS[name]
        case ast.Attribute(attr=name) if name in OUTSIDE_MATH:
            return getattr(math, name)
        case ast.List(elts=parts):
            return [_evaluate(part, values) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_evaluate(part, values) for part in parts)
        case ast.Set(elts=parts):
            return {_evaluate(part, values) for part in parts}
        case ast.Dict(keys=keys, values=items):
            pairs = zip(keys, items, strict=True)
            return {_evaluate(key, values): _evaluate(item, values) for key, item in pairs if key is not None}
        case ast.BoolOp(op=op, values=parts):
            result: Any = None
            for part in parts:
                result = _evaluate(part, values)
                if bool(result) is isinstance(op, ast.Or):
                    break
            return result
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_evaluate(operand, values))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _evaluate(left, values), _evaluate(right, values))
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compare(_evaluate(left, values), ops, others, values)
        case ast.Call(func=func, args=arguments, keywords=keywords):
            return _call(func, arguments, keywords, values)
    raise ValueProblem(f"{ast.unparse(node)} cannot be judged")


def _compare(left: Any, ops: list[ast.cmpop], others: list[ast.expr], values: list[Any]) -> bool:
    for op, other in zip(ops, others, strict=True):
        right = _evaluate(other, values)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _is(left: Any, right: Any) -> bool:
    """Identity, as far as data has one: of None, True, False and types; of other values, equality within a type."""
    if any(side is None or isinstance(side, bool | type) for side in (left, right)):
        return left is right
    return type(left) is type(right) and bool(left == right)


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Mod) and isinstance(left, str | bytes):
        raise ValueProblem("a text cannot be formatted here")
    if not isinstance(op, ast.Add | ast.Sub):
        _bounded(op, left, right)
    return _BINARY[type(op)](left, right)


def _bounded(op: ast.operator, left: Any, right: Any) -> None:
    """Refuse what would grow without bound."""
    sizes = [side.bit_length() if isinstance(side, int) else 64 for side in (left, right)]
    if any(isinstance(side, str | bytes | list | tuple) for side in (left, right)):
        count = min((side for side in (left, right) if isinstance(side, int)), default=0)
        length = max(len(side) for side in (left, right) if hasattr(side, "__len__"))
        large = count * length > 10 * LARGEST_BITS
    elif not isinstance(op, ast.Pow | ast.LShift):
        large = sum(sizes) > 2 * LARGEST_BITS
    else:
        large = isinstance(right, int) and abs(right) * max(1, sizes[0]) > LARGEST_BITS
    if large:
        raise ValueProblem("the numbers are too large to compute with")


def _call(func: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword], values: list[Any]) -> Any:
    given = [_evaluate(argument, values) for argument in arguments]
    named = {keyword.arg: _evaluate(keyword.value, values) for keyword in keywords if keyword.arg is not None}
    for value in [*given, *named.values()]:
        if isinstance(value, Opaque):
            raise ValueProblem(f"a {value.name} is no plain data")
    function = getattr(math, func.attr) if isinstance(func, ast.Attribute) else _BUILTINS[getattr(func, "id", "")]
    return function(*given, **named)


_FUNCTIONS: list[Any] = [abs, all, any, bool, bytes, complex, dict, float, frozenset, int, isinstance, len, list, max]
_FUNCTIONS += [min, round, set, sorted, str, sum, tuple, type, Fraction, Decimal]
_BUILTINS: dict[str, Any] = {function.__name__: function for function in _FUNCTIONS}
_UNARY: dict[type, Any] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_BINARY: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: dict[type, Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: _is,
    ast.IsNot: lambda left, right: not _is(left, right),
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def same_text(printed: bytes, expected: str) -> str | None:
    """Where what was printed differs from what was expected; None when it does not."""
    texts = (printed.decode(errors="replace"), expected)
    pairs = zip_longest(*([line.rstrip() for line in text.rstrip().split("\n")] for text in texts), fillvalue="")
    for number, (found, wanted) in enumerate(pairs, 1):
        if found != wanted:
            return f"line {number} is {short(found)}, expected {short(wanted)}"
    return None


def same_json(value: Any, expected: Any) -> bool:
    """Equality with a value that JSON has stored: its lists may have been tuples, its keys numbers."""
    if isinstance(value, list | tuple) and isinstance(expected, list):
        pairs = zip(value, expected, strict=False)
        return len(value) == len(expected) and all(same_json(left, right) for left, right in pairs)
    if isinstance(value, dict) and isinstance(expected, dict):
        named = {str(key): item for key, item in value.items()}
        return named.keys() == expected.keys() and all(same_json(named[key], expected[key]) for key in expected)
    return bool(value == expected)
