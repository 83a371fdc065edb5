r"""Closed numbers read from LaTeX by a grammar of our own: `\frac{3\sqrt{2}}{4}`, `2^{10}!`, `(0, \frac{\pi}{2}]`.

Reads numbers, tuples and intervals, sets, unions, lists, matrices, and what `\pm` gives. No engine, no evaluation of
text: only what the grammar knows. What could be read in two ways (`1/2\pi`, `\sqrt12`, `\log 2`) is refused.

Expressions with letters are read at one point, where each letter has a number of its own: two that differ there are
different, two that agree there may or may not be equal.
"""

import zlib
from fractions import Fraction
from functools import lru_cache

from rlvr_cli.verifiers import closed_numbers as numbers
from rlvr_cli.verifiers.closed_numbers import Closed, NotClosedError
from rlvr_cli.verifiers.closed_shapes import Shape
from rlvr_cli.verifiers.closed_tokens import LONGEST, tokens


@lru_cache(maxsize=4096)
def read(text: str, letters: bool = False) -> Shape | None:
    """What a text is, None when the grammar does not know it or it has no certain value.

    `letters`: read an expression with letters at a point.
    """
    try:
        return _Reader(tokens(text), letters).answer()
    except (NotClosedError, RecursionError):
        return None


_TIMES = ("*", "\\cdot", "\\times")
_OVER = ("/", "\\div")
_FRACTION = ("\\frac", "\\dfrac", "\\tfrac", "\\cfrac")
_FUNCTIONS = ("\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc", "\\ln", "\\exp", "\\arcsin", "\\arccos", "\\arctan")
_GREEK = {
    "\\alpha",
    "\\beta",
    "\\gamma",
    "\\delta",
    "\\epsilon",
    "\\theta",
    "\\lambda",
    "\\mu",
    "\\nu",
    "\\rho",
    "\\sigma",
}
_GREEK |= {
    "\\tau",
    "\\phi",
    "\\varphi",
    "\\psi",
    "\\omega",
    "\\Omega",
    "\\hbar",
    "\\ell",
    "\\eta",
    "\\kappa",
    "\\zeta",
    "\\xi",
}
_OPENING = {"(": ")", "[": "]"}
_STARTS = {"(", "{", "\\pi", "\\sqrt", "\\binom", "\\dbinom", "\\log", "e", "i", *_FRACTION, *_FUNCTIONS}


class _Reader:
    """Reads one answer from its tokens."""

    def __init__(self, parts: list[str], letters: bool) -> None:
        self._parts = [*parts, ""]
        self._letters = letters
        self._at = 0
        self._sign = 1  # what \pm means in this pass
        self._angles = False  # inside the argument of a function
        self._signs = 0  # how many \pm were met

    # What an answer can be

    def answer(self) -> Shape:
        """All of the tokens."""
        shape = self._list("", "list")
        if self._here():
            raise NotClosedError("something is left")
        return shape

    def _list(self, end: str, kind: str) -> Shape:
        """Items with commas or semicolons between; one alone is itself when it is no set or tuple."""
        items = self._union()
        while self._here() in (",", ";") and self._here():
            self._next()
            items += self._union()
        if self._here() != end:
            raise NotClosedError("a bracket is not closed")
        return items[0] if kind == "list" and len(items) == 1 else Shape(kind, tuple(items))

    def _union(self) -> list[Shape]:
        items = self._item()
        if self._here() != "\\cup":
            return items
        while self._here() == "\\cup":
            self._next()
            items += self._item()
        return [Shape("union", tuple(items))]

    def _item(self) -> list[Shape]:
        """One item; two where a \\pm stands in it."""
        here = self._here()
        if here == "\\{":
            self._next()
            items = self._list("\\}", "{}")
            self._next()
            return [items]
        if here.startswith("\\begin") or (here == "[" and self._parts[self._at + 1].startswith("\\begin")):
            return [self._matrix()]
        if here in _OPENING and self._commas():
            return [self._brackets()]
        start, before = self._at, self._signs
        first = self._number()
        if self._signs == before:
            return [first]
        if self._signs > before + 1:
            raise NotClosedError("several \\pm")
        self._at, self._sign, self._signs = start, -1, before
        second = self._number()
        self._sign = 1
        return [first, second]

    def _number(self) -> Shape:
        """A number, or an infinity where an endpoint can be one."""
        sign = -1 if self._here() == "-" else 1
        ahead = self._at + (self._here() in ("-", "+"))
        if self._parts[ahead] == "\\infty":
            self._at = ahead + 1
            return Shape("number", infinite=sign)
        return Shape("number", number=self._sum())

    def _commas(self) -> bool:
        """Whether the bracket that opens here has a comma of its own."""
        depth = 0
        for part in self._parts[self._at :]:
            depth += {"{": 1, "(": 1, "[": 1, "\\{": 1, "}": -1, ")": -1, "]": -1, "\\}": -1}.get(part, 0)
            if depth == 0:
                return False
            if depth == 1 and part in (",", ";"):
                return True
        return False

    def _brackets(self) -> Shape:
        opening = self._next()
        items = self._union()
        while self._here() in (",", ";"):
            self._next()
            items += self._union()
        closing = self._next()
        if closing not in (")", "]"):
            raise NotClosedError("a bracket is not closed")
        return Shape(opening + closing, tuple(items))

    def _matrix(self) -> Shape:
        bracket = self._next() if self._here() == "[" else ""
        opening = self._next()
        if "vmatrix" in opening.lower() or ("array" in opening) != bool(bracket):
            raise NotClosedError("a determinant")
        rows: list[list[Shape]] = [[]]
        while not self._here().startswith("\\end"):
            rows[-1] += self._item()
            if self._here() == "&":
                self._next()
            elif self._here() == "\\\\":
                self._next()
                if not self._here().startswith("\\end"):
                    rows.append([])
            elif not self._here().startswith("\\end"):
                raise NotClosedError("no matrix")
        self._next()
        if bracket and self._next() != "]":
            raise NotClosedError("a bracket is not closed")
        if len({len(row) for row in rows}) != 1 or self._signs:
            raise NotClosedError("rows of different lengths")
        return Shape(f"matrix {len(rows)}x{len(rows[0])}", tuple(item for row in rows for item in row))

    # Numbers

    def _sum(self) -> Closed:
        total: Closed | None = None
        while True:
            here = self._here()
            if here in ("+", "-", "\\pm"):
                self._next()
            elif total is not None:
                return total
            if here == "\\pm":
                self._signs += 1
            minus = here == "-" or (here == "\\pm" and self._sign < 0)
            term = self._product()
            term = numbers.negative(term) if minus else term
            total = term if total is None else numbers.add(total, term)

    def _product(self) -> Closed:
        total = self._signed()
        divided = False
        while True:
            here = self._here()
            if here in _TIMES:
                self._next()
                total = numbers.times(total, self._signed())
                divided = False
            elif here in _OVER:
                self._next()
                total = numbers.over(total, self._signed())
                divided = True
            elif here in _STARTS or self._is_letter(here):
                if divided:
                    raise NotClosedError("a product behind a division")
                total = numbers.times(total, self._power())
            else:
                return total

    def _signed(self) -> Closed:
        if self._here() == "-":
            self._next()
            return numbers.negative(self._power())
        return self._power()

    def _power(self) -> Closed:
        base = self._factorials(self._atom())
        if self._here() != "^":
            return base
        self._next()
        if self._here() == "\\circ" or self._parts[self._at : self._at + 3] == ["{", "\\circ", "}"]:
            self._at += 1 if self._here() == "\\circ" else 3
            return numbers.degrees(base) if self._angles else base  # elsewhere degrees are a unit
        if len(self._here()) > 1 and self._here()[0].isdigit():
            raise NotClosedError("an exponent without braces")
        value = numbers.power(base, self._atom())
        if self._here() == "^":
            raise NotClosedError("two exponents")
        return self._factorials(value)

    def _factorials(self, value: Closed) -> Closed:
        if self._here() == "!":
            self._next()
            if self._here() == "!":
                raise NotClosedError("a double factorial")
            return numbers.factorial(value)
        return value

    def _atom(self) -> Closed:
        here = self._next()
        if here[:1].isdigit() or here[:1] == ".":
            return self._mixed(here)
        if here in ("{", "("):
            value = self._sum()
            if self._next() != {"{": "}", "(": ")"}[here]:
                raise NotClosedError("a bracket is not closed")
            return value
        if here in _FRACTION:
            return numbers.over(self._argument(), self._argument())
        if here == "\\sqrt":
            return self._root()
        if here in ("\\binom", "\\dbinom"):
            return numbers.binomial(self._argument(), self._argument())
        if here in _FUNCTIONS:
            return numbers.function(here[1:], self._operand())
        if here == "\\log":
            return self._logarithm()
        if here in ("\\pi", "e", "i"):
            return numbers.constant(here.strip("\\"))
        if self._is_letter(here):
            return self._variable(here)
        raise NotClosedError(f"{here!r} is not in the grammar")

    def _is_letter(self, part: str) -> bool:
        return self._letters and ((len(part) == 1 and part.isalpha() and part not in "ei") or part in _GREEK)

    def _variable(self, name: str) -> Closed:
        """The number that a letter with its subscript has at the point."""
        if self._here() == "_":
            self._next()
            name += "_" + self._subscript()
        if self._here() in ("(", "!", "_"):
            raise NotClosedError("a function, or a factorial of a letter")
        return numbers.rational(Fraction(zlib.crc32(name.encode()) % 9973 + 1009, 4001))

    def _subscript(self) -> str:
        part = self._next()
        if part != "{":
            return part
        name = ""
        while (part := self._next()) != "}":
            name += part
        return name

    def _mixed(self, digits: str) -> Closed:
        """A number, with the fraction behind it when both are one mixed number."""
        if len(digits) > LONGEST:
            raise NotClosedError("too long")
        value = Fraction(digits)
        if self._here() in _FRACTION and digits.isdigit() and self._part_of_nothing():
            rest = self._parts[self._at + 1 : self._at + 7]
            if rest[:1] + rest[2:4] + rest[5:] == ["{", "}", "{", "}"] and rest[1].isdigit() and rest[4].isdigit():
                if not 0 < int(rest[1]) < int(rest[4]):
                    raise NotClosedError("a number before a fraction")
                self._at += 7
                return numbers.rational(value + Fraction(int(rest[1]), int(rest[4])))
            if rest[:1] != ["{"]:
                raise NotClosedError("a number before a fraction")
        return numbers.rational(value, decimal="." in digits)

    def _part_of_nothing(self) -> bool:
        """Whether the number just read stands at the beginning of a term: no product, power or division before it."""
        before = self._parts[self._at - 2] if self._at > 1 else ""
        if before in (*_TIMES, *_OVER, "^") or before[-1:].isdigit():
            raise NotClosedError("a mixed number inside a product")
        return True

    def _argument(self) -> Closed:
        """What a command takes: braces, or one digit, letter or command."""
        here = self._here()
        if here[:1].isdigit() and here.isdigit() and len(here) > 1:
            if len(here) > 2:
                raise NotClosedError("an argument without braces")
            self._parts[self._at : self._at + 1] = list(here)
        elif here not in ("{", "\\pi", "\\sqrt", "e", "i") and not here.isdigit() and not self._is_letter(here):
            raise NotClosedError("an argument without braces")
        if len(self._here()) == 1 and self._here().isdigit():
            return numbers.rational(Fraction(self._next()))
        return self._atom()

    def _root(self) -> Closed:
        degree = 2
        if self._here() == "[":
            self._next()
            digits = self._next()
            if not digits.isdigit() or len(digits) > 3 or self._next() != "]":
                raise NotClosedError("a root of an odd degree")
            degree = int(digits)
        if self._here().isdigit() and len(self._here()) > 1:
            raise NotClosedError("a root without braces")
        return numbers.root(self._argument(), degree)

    def _operand(self) -> Closed:
        """What a function is of: braces, parentheses, or one thing with nothing behind it that could belong to it."""
        if self._here() == "^":
            raise NotClosedError("a power of a function")
        wrapped = self._here() in ("(", "{")
        outside, self._angles = self._angles, True
        value = self._atom() if self._parts[self._at + 1] != "^" else self._power()
        self._angles = outside
        here = self._here()
        if here in ("^", "!") or (not wrapped and (here in (*_STARTS, *_OVER, *_TIMES) or self._is_letter(here))):
            raise NotClosedError("an argument without parentheses")
        return value

    def _logarithm(self) -> Closed:
        if self._here() != "_":
            raise NotClosedError("a logarithm to no stated base")
        self._next()
        base = self._argument()
        return numbers.logarithm(base, self._operand())

    def _here(self) -> str:
        return self._parts[self._at]

    def _next(self) -> str:
        part = self._parts[self._at]
        if not part:
            raise NotClosedError("something is missing")
        self._at += 1
        return part
