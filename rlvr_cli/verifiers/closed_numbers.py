"""Arithmetic on closed numbers to 60 digits, with no symbolic engine; read from LaTeX by closed_reader.py.

A value has its exact fraction while it has one. Time is bounded whatever is asked for: numbers have 78 digits and an
exponent, a power beyond 2^(2^43) is just huge, and what has no certain value is refused, never guessed.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

PRECISION = 260  # bits
EXACT_BITS = 4096  # of a numerator or denominator that is kept exactly
FINITE_BITS = 2**43  # |log2| of a number that is evaluated; one beyond is huge
PLAIN_BITS = 2**41  # |log2| of a number that is certainly not a huge one
SCALE_BITS = 2**30  # |log2| of what a huge number is multiplied with: 400 characters of it do not bring it back
CLOSE_BITS = 60  # bits that may be lost to cancellation before agreement proves nothing
ABSORBED_BITS = 100  # distance of two terms from which the smaller one hardly shows


class NotClosedError(Exception):
    """The text is no closed number that this grammar knows."""


@dataclass(frozen=True)
class Closed:
    """A number. `sharp`: nothing was lost on the way, so 40 equal digits mean equal. `decimal`: has a decimal point."""

    exact: Fraction | None = None
    inexact: Any = None  # mpf or mpc, where there is no exact value
    decimal: bool = False
    sharp: bool = True
    sign: int = 0  # of a huge number; 0 for all others

    @property
    def value(self) -> Any:
        """The number to 78 digits."""
        if self.exact is None:
            return self.inexact
        return _context().mpf(self.exact.numerator) / self.exact.denominator

    @property
    def real(self) -> bool:
        """Whether it has no imaginary part."""
        return self.exact is not None or not hasattr(self.inexact, "_mpc_")


def same(one: Closed, other: Closed) -> bool | None:
    """Whether two numbers are equal; None where that is not certain, or a matter of rounding decimals."""
    if one.sign or other.sign:
        plain = other if one.sign else one
        return False if not plain.sign and (plain.value == 0 or _context().mag(plain.value) < PLAIN_BITS) else None
    near = Fraction(1, 1000) if one.decimal or other.decimal else Fraction(0)
    if one.exact is not None and other.exact is not None:
        if one.exact == other.exact:
            return True
        return None if near and abs(one.exact - other.exact) <= near * max(abs(one.exact), abs(other.exact)) else False
    if not (one.sharp and other.sharp):
        return None
    gap, size = abs(one.value - other.value), max(abs(one.value), abs(other.value))
    if size == 0:
        return None
    if gap <= size * _context().mpf(10) ** -50:
        return True
    return False if gap > size * (_context().mpf(10) ** (-3 if near else -40)) else None


@lru_cache(maxsize=1)
def _context() -> Any:
    from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # sympy's arithmetic; a context of our own leaves the shared one as it is

    context = MPContext()
    context.prec = PRECISION
    return context


def rational(value: Fraction, decimal: bool = False, sharp: bool = True) -> Closed:
    """A number from its exact value."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 4 * EXACT_BITS:
        raise NotClosedError("too long")
    if _short(value):
        return Closed(value, None, decimal, sharp)
    return Closed(None, _context().mpf(value.numerator) / value.denominator, decimal, sharp)


@lru_cache(maxsize=4)
def constant(name: str) -> Closed:
    """The number `pi`, `e` or `i`."""
    context = _context()
    return Closed(None, {"pi": +context.pi, "e": +context.e, "i": context.mpc(0, 1)}[name])


def degrees(one: Closed) -> Closed:
    """An angle in degrees, as a number."""
    return over(times(one, constant("pi")), Closed(Fraction(180)))


def _short(value: Fraction) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= EXACT_BITS


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def _made(value: Any, *parts: Closed, sharp: bool = True) -> Closed:
    """A number computed from others."""
    if not _context().isfinite(value):
        raise NotClosedError("not finite")
    if value != 0 and abs(_context().mag(value)) > FINITE_BITS:
        raise NotClosedError("too large or too small")
    if value.imag == 0:
        value = value.real
    decimal = any(part.decimal for part in parts)
    return Closed(None, value, decimal, sharp and all(part.sharp for part in parts))


def _exactly(value: Fraction, *parts: Closed, sharp: bool = True) -> Closed:
    """An exact number computed from others. It need not be sharp either: a root of it may hide what was added."""
    return rational(value, any(part.decimal for part in parts), sharp and all(part.sharp for part in parts))


def _refuse_huge(*parts: Closed) -> None:
    if any(part.sign for part in parts):
        raise NotClosedError("huge")


def add(one: Closed, other: Closed) -> Closed:
    """The sum."""
    if one.sign or other.sign:
        if one.sign and other.sign and one.sign != other.sign:
            raise NotClosedError("huge")
        return one if one.sign else other
    if one.exact is not None and other.exact is not None:
        sharp = not (one.exact and other.exact) or abs(_bits(one.exact) - _bits(other.exact)) < ABSORBED_BITS
        return _exactly(one.exact + other.exact, one, other, sharp=sharp)
    total = one.value + other.value
    if one.value == 0 or other.value == 0:
        return _made(total, one, other)
    sizes = sorted(_context().mag(part.value) for part in (one, other))
    lost = sizes[1] - _context().mag(total) if total != 0 else PRECISION
    return _made(total, one, other, sharp=sizes[1] - sizes[0] < ABSORBED_BITS and lost < CLOSE_BITS)


def negative(one: Closed) -> Closed:
    """The number with its sign turned."""
    if one.sign:
        return Closed(sign=-one.sign)
    if one.exact is not None:
        return Closed(-one.exact, None, one.decimal, one.sharp)
    return Closed(None, -one.inexact, one.decimal, one.sharp)


def _real_sign(one: Closed) -> int:
    if one.sign:
        return one.sign
    if not one.real or one.value == 0:
        raise NotClosedError("no sign")
    return 1 if one.value > 0 else -1


def _scaling_sign(one: Closed) -> int:
    """The sign of what a huge number is multiplied with or divided by."""
    if not one.sign and one.value != 0 and abs(_context().mag(one.value)) > SCALE_BITS:
        raise NotClosedError("huge")
    return _real_sign(one)


def times(one: Closed, other: Closed) -> Closed:
    """The product."""
    if one.sign or other.sign:
        return Closed(sign=_scaling_sign(one) * _scaling_sign(other))
    if one.exact is not None and other.exact is not None:
        return _exactly(one.exact * other.exact, one, other)
    return _made(one.value * other.value, one, other)


def over(one: Closed, other: Closed) -> Closed:
    """The quotient."""
    _refuse_huge(other)
    if other.value == 0:
        raise NotClosedError("division by zero")
    if one.sign:
        return Closed(sign=one.sign * _scaling_sign(other))
    if one.exact is not None and other.exact is not None:
        return _exactly(one.exact / other.exact, one, other)
    return _made(one.value / other.value, one, other)


def power(base: Closed, exponent: Closed) -> Closed:
    """The power. A negative base has whole exponents only: its roots are a matter of convention."""
    if exponent.sign or base.sign:
        if exponent.sign < 0 or (not base.sign and not (_real_sign(base) > 0 and base.value >= 1.5)):
            raise NotClosedError("huge")
        if base.sign < 0 or (not exponent.sign and not (_real_sign(exponent) > 0 and exponent.value >= 1)):
            raise NotClosedError("huge")
        return Closed(sign=1)
    whole = exponent.exact is not None and exponent.exact.denominator == 1
    if base.value == 0 and not (_real_sign(exponent) > 0):
        raise NotClosedError("no power")
    if not whole and (not base.real or base.value < 0):
        raise NotClosedError("a root of a negative number")
    if whole and base.exact is not None and exponent.exact is not None and abs(exponent.exact) <= EXACT_BITS:
        bits = max(base.exact.numerator.bit_length(), base.exact.denominator.bit_length())
        if bits * abs(int(exponent.exact)) <= EXACT_BITS:
            return _exactly(base.exact ** int(exponent.exact), base, exponent)
    if base.value in (0, 1):
        return _made(base.value, base, exponent)
    context = _context()
    bits = exponent.value * context.log(abs(base.value), 2)
    if not hasattr(bits, "_mpc_"):
        if bits > FINITE_BITS and base.value > 0:
            return Closed(sign=1)
        if abs(bits) > FINITE_BITS:
            raise NotClosedError("too large or too small")
    elif abs(bits) > FINITE_BITS:
        raise NotClosedError("too large or too small")
    return _made(context.power(base.value, exponent.value), base, exponent)


def root(one: Closed, degree: int = 2) -> Closed:
    """The square root, of a negative number too, or a root of higher degree; a real one of a real number."""
    _refuse_huge(one)
    if degree % 2 and one.real and one.value < 0:
        return negative(root(negative(one), degree))
    if degree < 2 or (degree > 2 and (not one.real or one.value < 0)):
        raise NotClosedError("a root of a negative number")
    if one.value == 0:
        return one
    if one.exact is not None and one.exact > 0:
        parts = [_whole_root(part, degree) for part in (one.exact.numerator, one.exact.denominator)]
        if all(parts):
            return _exactly(Fraction(parts[0], parts[1]), one)
    return _made(_context().sqrt(one.value) if degree == 2 else _context().root(one.value, degree), one)


def _whole_root(value: int, degree: int) -> int:
    """The root of a whole number when that is whole, else 0."""
    if value.bit_length() > PRECISION:
        return 0
    near = int(_context().nint(_context().root(value, degree)))
    return near if near**degree == value else 0


def factorial(one: Closed) -> Closed:
    """The factorial of a whole number."""
    if one.sign > 0:
        return one
    if one.exact is None or one.exact.denominator != 1 or one.exact < 0:
        if one.exact is None and one.sharp and one.real and one.value > 10**20:
            return Closed(sign=1)
        raise NotClosedError("a factorial of no whole number")
    count = int(one.exact)
    if count > 10**20:
        return Closed(sign=1)
    if count > 10**9:
        raise NotClosedError("too large")
    if count <= 300:
        value = 1
        for factor in range(2, count + 1):
            value *= factor
        return _exactly(Fraction(value), one)
    return _made(_context().factorial(count), one)


def binomial(upper: Closed, lower: Closed) -> Closed:
    """The number of ways to choose."""
    counts = [part.exact for part in (upper, lower)]
    if any(count is None or count.denominator != 1 or not 0 <= count <= 10**9 for count in counts):
        raise NotClosedError("no binomial")
    n, k = (int(count) for count in counts if count is not None)
    if k > n:
        return _exactly(Fraction(0), upper, lower)
    if n <= 1000:
        from math import comb

        return _exactly(Fraction(comb(n, k)), upper, lower)
    return _made(_context().binomial(n, k), upper, lower)


_FUNCTIONS = {"sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "ln": "log"}
_FUNCTIONS |= {"exp": "exp", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}


def function(name: str, one: Closed) -> Closed:
    """An elementary function of a real number."""
    _refuse_huge(one)
    if not one.real or (one.value != 0 and _context().mag(one.value) > 64):
        raise NotClosedError("an argument beyond the grammar")
    if name == "ln" and one.value <= 0:
        raise NotClosedError("a logarithm of no positive number")
    try:
        value = getattr(_context(), _FUNCTIONS[name])(one.value)
    except (ValueError, ZeroDivisionError) as bad:
        raise NotClosedError("not defined") from bad
    return _tidy_zero(value, one)


def logarithm(base: Closed, one: Closed) -> Closed:
    """A logarithm to a base."""
    _refuse_huge(base, one)
    if any(not part.real or part.value <= 0 for part in (base, one)) or base.value == 1:
        raise NotClosedError("no logarithm")
    return _tidy_zero(_context().log(one.value) / _context().log(base.value), base, one)


def _tidy_zero(value: Any, *parts: Closed) -> Closed:
    """A value of a function; not sharp when it is zero but for rounding, as the sine of pi is."""
    if value == 0:
        return _exactly(Fraction(0), *parts)
    return _made(value, *parts, sharp=_context().mag(value) > -CLOSE_BITS)
