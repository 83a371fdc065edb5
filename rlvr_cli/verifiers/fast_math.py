r"""Verdicts of `math` that are certain without a symbolic engine, in time linear in the answer.

Decided here: the same text; plain numbers; closed numbers, tuples, intervals, sets, lists and matrices of them, to 50
digits; units and dates that differ; texts. Anything else, and any doubt, is left to the engine: None.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from rlvr_cli.verifiers import closed_reader
from rlvr_cli.verifiers.closed_numbers import NotClosedError, rational, times
from rlvr_cli.verifiers.closed_numbers import same as same_number
from rlvr_cli.verifiers.closed_shapes import Shape
from rlvr_cli.verifiers.closed_shapes import same as same_shape
from rlvr_cli.verifiers.dates import date
from rlvr_cli.verifiers.extraction import hedges
from rlvr_cli.verifiers.numbers import numbers
from rlvr_cli.verifiers.readings import Reading, plain_number, reading, units_fit


@dataclass(frozen=True)
class Decision:
    """Whether an answer is right, and if not, why."""

    right: bool
    reason: str = ""


RIGHT = Decision(True)
DIFFERENT = Decision(False, "not equal to the answer")
OR = Decision(False, "several answers joined by or")
NOT_ONE = Decision(False, "several values where one is asked for")


def decide(gold: str, answer: str, rounded: bool = False) -> Decision | None:
    """The verdict where it is certain. `rounded`: the record allows for rounding, so no decimal is wrong here."""
    if gold == answer:
        return RIGHT
    mine, yours = reading(gold), reading(answer)
    if mine.modulus and yours.modulus and mine.modulus != yours.modulus:
        return DIFFERENT
    if mine.number is not None and yours.number is not None and not mine.units and not yours.units:
        return _numbers(mine, yours, rounded)
    if mine.canonical == yours.canonical:
        return RIGHT
    if hedges(answer) and not mine.several and not (yours.union and _RANGE.search(gold)):
        return _alternatives(gold, answer)
    for compare in (_dates, _in_bases, _letters):
        if (decision := compare(mine, yours)) is not None:
            return decision
    if mine.prose or yours.prose:
        return _texts(mine, yours)
    if mine.comma is not None or yours.comma is not None:
        pairs = ((mine.comma, yours.number), (mine.number, yours.comma))
        if any(comma is not None and comma == number for comma, number in pairs):
            return RIGHT
    return _values(mine, yours, rounded)


_EITHER = re.compile(r"\s*,?\s*(?:\\(?:text\w*|mbox)\s*\{\s*or\s*\}|\bor\b)\s*", re.IGNORECASE)


def _alternatives(gold: str, answer: str) -> Decision:
    """An answer with `or` where one value is asked for: a hedge, unless each part is right: `1/2 or 0.5`."""
    parts = _EITHER.split(answer, maxsplit=3)
    if len(parts) > 1 and not any(hedges(part) for part in parts):
        decisions = [decide(gold, part) if part.strip() else OR for part in parts]
        if all(decision is not None and decision.right for decision in decisions):
            return RIGHT
    return OR


_RANGE = re.compile(r"\\cup|\\setminus|\\ne|[<>≤≥∪\[]|\\[lg](?:eq?|t)(?![a-z])")  # what may be a union of intervals


def _numbers(mine: Reading, yours: Reading, rounded: bool) -> Decision | None:
    """Plain numbers. A decimal that is near is a matter of rounding."""
    assert mine.number is not None
    assert yours.number is not None
    if mine.number == yours.number:
        return RIGHT
    if not (mine.decimal or yours.decimal):
        return DIFFERENT
    near = abs(mine.number - yours.number) * 1000 <= max(abs(mine.number), abs(yours.number))
    return None if near or rounded else DIFFERENT


def _values(mine: Reading, yours: Reading, rounded: bool) -> Decision | None:
    """Values that the grammar of closed numbers knows, with their units."""
    factor = rational(Fraction(1))
    if mine.units and yours.units:
        fit = units_fit(mine.units, yours.units)
        if fit is None:
            return Decision(False, "the units measure different things")
        factor = rational(fit)
    if mine.name != yours.name and mine.name and yours.name:
        return None
    if mine.value.endswith("\\%") or yours.value.endswith("\\%"):
        return _percents(mine.value, yours.value, rounded)
    one, other = closed_reader.read(mine.value), closed_reader.read(yours.value)
    if one is None or other is None:
        return Decision(False, "another unit") if factor.exact != 1 else _at_a_point(mine, yours, rounded)
    if factor.exact != 1:
        if one.number is None or other.number is None:
            return Decision(False, "another unit")
        try:
            other = Shape("number", number=times(other.number, factor))
        except NotClosedError:
            return None
    equal = same_shape(one, other)
    if equal is False and rounded:
        return None
    return None if equal is None else RIGHT if equal else DIFFERENT


_MAYBE_UNIT = re.compile(r"[\d})]\s+[A-Za-z]$|\d[a-z]$")
_CONSTANT = re.compile(r"\+\s?[cC]$")  # of integration


def _at_a_point(mine: Reading, yours: Reading, rounded: bool) -> Decision | None:
    """Expressions with letters are different when they differ at a point."""
    letters = [match and match[0].strip()[-1] for match in (_MAYBE_UNIT.search(it.text) for it in (mine, yours))]
    if all(letters) and letters[0] != letters[1] and mine.text[:-1].strip() == yours.text[:-1].strip():
        return DIFFERENT  # `10 m` and `10 s`, be it a unit or a variable
    if rounded or mine.units or yours.units or any(letters):
        return None
    gold, answer = mine.value, yours.value
    if _CONSTANT.search(gold) and _CONSTANT.search(answer):
        gold, answer = gold[:-1] + "C", answer[:-1] + "C"
    one, other = closed_reader.read(gold, letters=True), closed_reader.read(answer, letters=True)
    if one is None or other is None:
        return None
    return DIFFERENT if same_shape(one, other) is False else None


def _percents(gold: str, answer: str, rounded: bool) -> Decision | None:
    """Percentages: `28%` is `0.28`, and `28` as well, as many data sets leave the sign out."""
    signs = (gold.endswith("\\%"), answer.endswith("\\%"))
    bare = [text.removesuffix("\\%").strip() for text in (gold, answer)]
    one, other = (closed_reader.read(text) for text in bare)
    if one is None or other is None or one.number is None or other.number is None:
        return None
    plainly = same_number(one.number, other.number)
    if all(signs):
        return None if plainly is None or (rounded and not plainly) else RIGHT if plainly else DIFFERENT
    if plainly and plain_number(bare[signs.index(True)]) is not None:
        return RIGHT
    percent, number = (one.number, other.number) if signs[0] else (other.number, one.number)
    exactly = same_number(times(percent, _HUNDREDTH), number)
    if exactly:
        return RIGHT
    return DIFFERENT if exactly is False and plainly is False and not rounded else None


_HUNDREDTH = rational(Fraction(1, 100))


def _dates(mine: Reading, yours: Reading) -> Decision | None:
    """Dates, where both are; a date without its year agrees with one of any year."""
    one = date(mine.text)
    if one is None:
        return None
    other = date(yours.text)
    if other is None or (one[0] == "slashed") != (other[0] == "slashed"):
        return Decision(False, "the answer is another text than the date asked for") if one[0] != "slashed" else None
    same = one == other if one[0] == "slashed" or (one[0] and other[0]) else one[1:] == other[1:]
    return RIGHT if same else Decision(False, "another date")


_BASED = re.compile(r"([0-9][0-9A-F]*)_\s?(?:\{\s?(\d{1,2})\s?\}|(\d))")


def _in_bases(mine: Reading, yours: Reading) -> Decision | None:
    """Whole numbers in another base, `2516_8`; one that leaves its base out has the other's."""
    one, other = _BASED.fullmatch(mine.value or mine.text), _BASED.fullmatch(yours.value or yours.text)
    if one is None or (other is None and not re.fullmatch("[0-9][0-9A-F]*", yours.text)):
        if other is None or mine.number is None:
            return None
        same = mine.text == other[1] or _in_base(other) == mine.number
    elif other is None:
        same = one[1] == yours.text
    else:
        same = _in_base(one) is not None and _in_base(one) == _in_base(other)
    return RIGHT if same else Decision(False, "another number or base")


def _in_base(match: re.Match[str]) -> int | None:
    try:
        return int(match[1], int(match[2] or match[3]))
    except ValueError:  # no digits of that base, or no base
        return None


_LETTER = re.compile(r"(?:(?:option|choice)\s+)?\(?([A-J])\)?(?:\s*[.):]\s.*)?", re.DOTALL)


def _letters(mine: Reading, yours: Reading) -> Decision | None:
    """The letter of an option, `A` or `(A) Paris`, where one is asked for."""
    if len(mine.canonical) != 1 or mine.canonical not in "ABCDEFGHIJ":
        return None
    match = _LETTER.fullmatch(_LATEX_TEXT.sub(lambda it: it[1] or "", yours.text).strip())
    if match is None:
        return DIFFERENT if yours.number is not None else None
    return RIGHT if match[1] == mine.canonical else DIFFERENT


_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[A-Za-z]+|[^\sA-Za-z\d]")
_LATEX_TEXT = re.compile(r"\\(?:text\w*|mbox|mathrm)\s*\{([^{}]*)\}|[{}$]")
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_ONES += " seventeen eighteen nineteen"
_COUNTS = {word: count for count, word in enumerate(_ONES.split())}
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_COUNTS |= {word: count for count, word in zip(range(20, 100, 10), _TENS, strict=True)}


def counted(text: str) -> int | None:
    """The number below a hundred that words are: `twelve`, `Forty-two`."""
    words = _LATEX_TEXT.sub(lambda match: match[1] or "", text).lower().replace("-", " ").strip(" .").split()
    if len(words) == 2 and words[0] in _TENS and _COUNTS.get(words[1], 0) in range(1, 10):
        return _COUNTS[words[0]] + _COUNTS[words[1]]
    return _COUNTS.get(words[0]) if len(words) == 1 else None


def _texts(mine: Reading, yours: Reading) -> Decision | None:
    """Answers with words in them."""
    if _tokens(mine.text) == _tokens(yours.text):
        return RIGHT
    if mine.prose and not _mathematics(mine.text):
        if yours.prose and not _mathematics(yours.text):
            return DIFFERENT
        there = numbers(mine.text)
        count = counted(mine.text) if not there else there[0].value if len(there) == 1 else None
        if count is not None and yours.number is not None:
            return RIGHT if count == yours.number else DIFFERENT
        return None if there or set(_COUNTS) & set(mine.prose) else DIFFERENT
    if not mine.prose and not _mathematics(yours.text):
        return _within(mine, yours)
    return None


def _within(mine: Reading, yours: Reading) -> Decision | None:
    """A value asked for, and an answer in words: `x is 5`, `about 12 apples`. Only one number may be in it."""
    found = numbers(yours.text)
    if not found and mine.number is not None:
        return RIGHT if counted(yours.text) == mine.number else DIFFERENT
    if len(found) != 1:
        return NOT_ONE if found and not mine.several else None
    if mine.number is None:
        return None
    if found[0].value == mine.number:
        return RIGHT
    return DIFFERENT if found[0].whole and "%" not in yours.text and "%" not in mine.text else None


def _tokens(text: str) -> list[str]:
    """The words and numbers of a text, in small letters."""
    plain = _LATEX_TEXT.sub(lambda match: match[1] or " ", text)
    return [_plain_token(token) for token in _TOKEN.findall(plain)]


def _plain_token(token: str) -> str:
    value = plain_number(token) if token[0].isdigit() else None
    return token.lower() if value is None else str(value)


def _mathematics(text: str) -> bool:
    """Whether there is more than words and plain numbers: LaTeX beyond text in it."""
    return "\\" in _LATEX_TEXT.sub("", text) or "$" in text or "^" in text or "=" in text
