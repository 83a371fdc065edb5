"""Scorers that evaluate a policy's text as Python, made to read it instead.

reasoning-gym (0.1.25) calls `eval` on answers in four tasks, on what records say in two more, and in five sympy's
`parse_expr`, which evaluates too. `disarm` puts `ast.literal_eval` and the readers below in their places. `unevaluated`
watches that nothing else evaluates text while a scorer runs, whatever version of the library is there: an audit hook
stops it.
"""

import ast
import importlib
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Any

LONGEST = 2000  # characters of an expression
LARGEST = 10_000  # bits of an integer power

_EVAL = (
    "algorithmic.binary_matrix",
    "algorithmic.number_sorting",
    "algorithmic.spiral_matrix",
    "algorithmic.string_insertion",
    "games.n_queens",
)
_PARSE_EXPR = ("games.countdown", "games.puzzle24")
_SYMPY = {
    "algebra.intermediate_integration": "sympy",
    "algebra.polynomial_multiplication": "sp",
    "algebra.simple_integration": "sympy",
}


class EvaluationError(RuntimeError):
    """A scorer was about to evaluate text as Python."""


def disarm() -> None:
    """Give the scorers of reasoning-gym readers in place of evaluators."""
    import sympy

    reading = SimpleNamespace(**{**vars(sympy), "parse_expr": expression})
    importlib.import_module("sympy.physics.units")  # simplify would, while a record's time runs
    changes: list[tuple[str, str, Any]] = [(name, "eval", ast.literal_eval) for name in _EVAL]
    changes.append(("arithmetic.bitwise_arithmetic", "eval", integer))
    changes += [(name, "parse_expr", expression) for name in _PARSE_EXPR]
    changes += [(name, alias, reading) for name, alias in _SYMPY.items()]
    for name, attribute, reader in changes:
        setattr(importlib.import_module(f"reasoning_gym.{name}"), attribute, reader)


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS = {
    "Abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "cot", "csc", "exp", "ln", "log", "sec",
    "sin", "sinh", "sqrt", "tan", "tanh",
}  # fmt: skip
_CONSTANTS = {"E", "pi", "I"}


def expression(text: str, local_dict: dict[str, Any] | None = None) -> Any:
    """A formula as sympy's object, from its syntax tree: numbers, names, + - * / ** and elementary functions.

    Raises ValueError for all else, SyntaxError for what is no formula.
    """
    if len(text) > LONGEST:
        raise ValueError(f"a formula of {len(text)} characters")
    return _built(ast.parse(text.strip(), mode="eval").body, local_dict or {})


def _built(node: ast.expr, known: dict[str, Any]) -> Any:
    import sympy

    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int(value)):
            return sympy.Integer(value)
        case ast.Constant(value=float(value)):
            return sympy.Float(value)
        case ast.Name(id=name):
            if name in known:
                return known[name]
            return getattr(sympy, name) if name in _CONSTANTS else sympy.Symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_built(operand, known)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _built(operand, known)
        case ast.BinOp(op=sign, left=left, right=right) if type(sign) in _OPERATORS:
            one, other = _built(left, known), _built(right, known)
            if isinstance(sign, ast.Pow):
                _bounded(one, other)
            return _OPERATORS[type(sign)](one, other)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return getattr(sympy, name)(*[_built(argument, known) for argument in arguments])
    raise ValueError(f"no formula: {type(node).__name__}")


_BITWISE: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: lambda value, places: value << min(places, LARGEST),
    ast.RShift: operator.rshift,
}


def integer(text: str) -> int:
    """The value of a formula of integers with + - * & | ^ ~ << >>. Raises ValueError for all else."""
    if len(text) > LONGEST:
        raise ValueError(f"a formula of {len(text)} characters")
    return _integer(ast.parse(text.strip(), mode="eval").body)


def _integer(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return int(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_integer(operand)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_integer(operand)
        case ast.BinOp(op=sign, left=left, right=right) if type(sign) in _BITWISE:
            return _BITWISE[type(sign)](_integer(left), _integer(right))
    raise ValueError(f"no formula of integers: {type(node).__name__}")


def _bounded(base: Any, exponent: Any) -> None:
    """Raise ValueError for a power of numbers that would be huge."""
    if base.is_Rational and exponent.is_Rational:
        size = max(abs(base.p), base.q).bit_length() * abs(exponent)
        if size > LARGEST or max(abs(exponent.p), exponent.q) > LARGEST:
            raise ValueError("a power that is too large")


# What Python's own library and sympy's caches make of text that is theirs, such as the methods of a dataclass.
_TRUSTED = ("dataclasses", "collections", "functools", "enum", "typing", "sympy.polys.monomials")
_IMPORTING = "<frozen importlib._bootstrap>"

_watching = False
_stopped = False
_hooked = False


@contextmanager
def unevaluated() -> Iterator[None]:
    """Raise EvaluationError when the body evaluates text as Python, even where it would swallow the exception."""
    global _watching, _stopped, _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # for good: there is no taking it away
        _hooked = True
    _watching, _stopped = True, False
    try:
        yield
    finally:
        _watching = False
        if _stopped:
            raise EvaluationError("the scorer was about to evaluate text as Python; it was stopped")


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    global _stopped
    if not _watching or event != "exec":
        return
    name = getattr(arguments[0], "co_filename", "<")
    if name.startswith("<") and not name.startswith("<frozen"):
        frame: FrameType | None = sys._getframe(1)
        if frame is not None and frame.f_globals.get("__name__") in _TRUSTED:
            return
        while frame is not None:  # a module that is imported now makes what it likes
            if frame.f_code.co_filename == _IMPORTING:
                return
            frame = frame.f_back
        _stopped = True
        raise EvaluationError("text is not evaluated")
