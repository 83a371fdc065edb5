r"""The one quantity that an answer states: a number with its unit, or why there is none.

Reads `1,234.5`, `1 234 567`, `1.234,56`, `3,14`, `−5`, `1/2`, `3 1/4`, `1.23e-4`, `1.23 \times 10^{-4}`, `10⁻⁴`,
`$5 million`, `5 ft 3 in` (a sum), infinity. Of a statement with several numbers the first counts; behind an equals
sign, the first there; of prose, the last. What is no single number is refused with a reason: a list, a range,
alternatives, a bound (`at least 5`), a formula (`2\pi`, `\sqrt{5}`, `3 + 4`), a ratio or time of day (`2:30`).
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest

from rlvr_cli.verifiers.extraction import hedges
from rlvr_cli.verifiers.items import single_spaces
from rlvr_cli.verifiers.numbers import Number, numbers, plain
from rlvr_cli.verifiers.units import SCALES, Unit, named, plain_units, unit_at

LONGEST = 1000  # characters of a statement
TAIL = 4000  # characters at the end of prose that are looked at


class NoQuantityError(Exception):
    """There is no number."""


class NotOneError(Exception):
    """There is something, but not one number."""


@dataclass(frozen=True)
class Quantity:
    """A value and its unit in all its meanings (none: a bare number). `infinite` is the sign of an infinity."""

    value: Fraction
    units: tuple[Unit, ...]
    text: str
    whole: bool = False  # written as an integer
    infinite: int = 0


@dataclass(frozen=True)
class _Mention:
    quantity: Quantity
    start: int
    end: int


def quantity(text: str, how: str) -> Quantity:
    """The quantity of a statement found in a way that extraction.Found names; the last one of prose (`none`).

    Raises NoQuantityError or NotOneError.
    """
    return _read(text, how)[0]


def only_quantity(text: str) -> Quantity | None:
    """The quantity that a text is: one number, a unit or a few words behind it, and nothing else."""
    try:
        it, before, after = _read(text, "box")
    except (NoQuantityError, NotOneError):
        return None
    return it if not before.strip(" (") and _LABEL.fullmatch(after) else None


_VAGUE = re.compile(r"\bor (?:so|thereabouts)\b|\bmore or less\b", re.IGNORECASE)
_LABEL = re.compile(r"(?:\s*[(]?[^\W\d_]+[)]?){0,4}\s*[.)]?\s*")
_INFINITY = re.compile(r"(?P<sign>[-+]?)\s*(?:\\infty|∞|\binf(?:inity)?\b)(?![^\W_])", re.IGNORECASE)


def _read(text: str, how: str) -> tuple[Quantity, str, str]:
    """The quantity, and the texts before and after it."""
    if how == "none":
        if len(text) > TAIL:
            text = text[-TAIL:].partition(" ")[2]  # not half a number
    elif len(text := single_spaces(text)) > LONGEST:
        raise NotOneError(f"the answer has {len(text)} characters")
    elif hedges(_VAGUE.sub("", text)):
        raise NotOneError("several answers joined by or")
    if how in ("phrase", "none"):
        text = re.sub(r"!(?=\s|\W*$)", "", text)  # an exclamation; in a box, a factorial
    text = _tidy(text)
    if how != "none":
        text = _right_side(text)
    found = _mentions(text)
    infinities = list(_INFINITY.finditer(text))
    if not found:
        if not infinities:
            raise NoQuantityError("there is no number in the answer")
        it = infinities[-1]
        sign = -1 if it["sign"] == "-" else 1
        return Quantity(Fraction(0), (), it[0], infinite=sign), text[: it.start()], text[it.end() :]
    if infinities and how != "none":
        raise NotOneError("several numbers where one is asked for")
    first = 0
    if how == "none":
        first = len(found) - 1
        if first and found[first].quantity.units and found[first - 1].quantity.units:
            first -= _REMARK.fullmatch(text, found[first - 1].end, found[first].start) is not None
    first, last = _alone(text, found, first)
    start, end = found[first].start, found[last].end
    _not_part(text, start, end, bool(found[first].quantity.units))
    return _total(text, found[first : last + 1]), text[:start], text[end:]


# Plain writing

_DOLLAR = "\uff04"  # stands for an escaped dollar while pairs of dollars are taken off
_REWRITES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\\text\s*\{\s*\\?\$\s*\}|\\\$"), _DOLLAR),
    (re.compile(r"\$\$?([^$]*)\$\$?"), r" \1 "),
    (re.compile(_DOLLAR), "$"),
    (re.compile(r"\\[()\[\]]|\\(?:left|right|displaystyle)(?![A-Za-z])"), " "),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)(?!\d)"), r"\\frac{\1}{\2}"),
    (re.compile("½"), " 1/2"),
    (re.compile("¼"), " 1/4"),
    (re.compile("¾"), " 3/4"),
    (re.compile("⅓"), " 1/3"),
    (re.compile("⅔"), " 2/3"),
    (re.compile(r"(?<=\d)\*\*(?=[-+(]?\d)"), "^"),
    (re.compile(r"\*\*|__|`|^\s*\*|\*\s*$"), ""),  # emphasis
    (re.compile(r">=|=>|\\geq?(?:slant)?(?![A-Za-z])|\\gt(?![A-Za-z])"), "≥"),
    (re.compile(r"<=|\\leq?(?:slant)?(?![A-Za-z])|\\lt(?![A-Za-z])"), "≤"),
    (re.compile(r"!=|\\neq?(?![A-Za-z])"), "≠"),
    (re.compile(r"\b(?:minus|negative)\s+(?=[$€£¥₹.\d]|inf|\\inf)", re.IGNORECASE), "-"),
    (re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)"), "*"),
    (re.compile(r"(?<=\d)\s*(?:\\cdot|\\times|×|·|⋅)\s*(?=10\s*\^)"), "*"),
    (re.compile(r"(?<![\d.*])10\^\{?\s*([-+]?\d+)\s*\}?(?!\d)"), r"1*10^\1"),
]
_MIXED = re.compile(r"(\d)\s*\\[dt]?frac")  # 3\frac{1}{4}
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d,]|\.\d{3}| ?\d|\s*/)")  # 1 234 567
_EUROPEAN = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d+(?![\d.,])")  # 1.234,56
_DECIMAL_COMMA = re.compile(r"(?<![\w.,(\[{])(\d+),(\d{1,2}|\d{4,})(?![\d,.]\d|\d|\s*[)\]}])")  # 3,14


def _tidy(text: str) -> str:
    """The text with numbers and units written plainly. No number changes its value."""
    text = re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", _lowered, _MIXED.sub(r"\1 \\frac", text))
    text = single_spaces(plain(text))
    for pattern, written in _REWRITES:
        text = pattern.sub(written, text)
    text = plain_units(plain(text))
    text = _SPACED.sub(lambda number: number[0].replace(" ", ""), text)
    text = _EUROPEAN.sub(lambda number: number[0].replace(".", "").replace(",", "."), text)
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _lowered(power: re.Match[str]) -> str:
    return "^" + power[0].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))


_EQUALS = re.compile(r"=|≈|≃|≅|\\(?:approx|simeq|cong)(?![A-Za-z])")
_NEXT_EQUATION = re.compile(r"(?:[,;\n]|\band\b).*[A-Za-z]\w*\s*\Z", re.DOTALL)


def _right_side(text: str) -> str:
    """What stands behind the last equals sign that has a number behind it."""
    sides = _EQUALS.split(text)
    if any(_NEXT_EQUATION.search(side) for side in sides[1:-1]):
        raise NotOneError("several equations where one number is asked for")
    return next((side for side in reversed(sides) if numbers(side) or _INFINITY.search(side)), text)


# Numbers with their units

_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z])")
_CURRENCY_BEFORE = re.compile(r"(?<![A-Za-z])(?:(US|CA|A|AU|HK|NZ)\$|([A-Z]{3}|Rs)\.?|([$€£¥₹]))\s*\Z")
_CURRENCY = re.compile(r"[$€£¥₹]")
_SCALE = re.compile(rf"\s*({'|'.join(SCALES)})s?(?![A-Za-z])", re.IGNORECASE)
_MONEY_SCALE = re.compile(r"\s*(?:(k|K)|(M|mn)|(B|bn)|(T))(?![A-Za-z])")


def _mentions(text: str) -> list[_Mention]:
    """The numbers of a text with their units. A whole number and a fraction side by side are one mixed number."""
    found: list[_Mention] = []
    mixed = False
    there = numbers(text)
    for number, following in zip_longest(there, there[1:]):
        if mixed:
            mixed = False
            continue
        inside = found and number.start < found[-1].end  # the exponent of a unit
        if inside or _ORDINAL.match(text, number.end):
            continue
        if following is not None and _is_mixed(text, number, following):
            mixed = True
            value = number.value + following.value if "-" not in number.text else number.value - following.value
            found.append(_mention(text, replace(number, value=value, end=following.end, whole=False)))
        else:
            found.append(_mention(text, number))
    return found


def _is_mixed(text: str, number: Number, following: Number) -> bool:
    between = text[number.end : following.start]
    return (
        number.whole
        and "/" in following.text
        and 0 <= following.value < 1
        and following.text[0] not in "+-"
        and (between or " ").isspace()
    )


def _mention(text: str, number: Number) -> _Mention:
    currency = _CURRENCY.search(number.text)
    code = None if currency else _CURRENCY_BEFORE.search(text[max(0, number.start - 8) : number.start])
    money = named(currency[0]) if currency else ()
    start = number.start
    if code:
        money = () if code[1] and code[1] != "US" else named(code[2] or "$" if code[1] else code[2] or code[3])
        money = tuple(unit for unit in money if len(unit.dimension) == 1 and len(unit.dimension[0][0]) == 3)
        start -= len(code[0]) if money else 0
    value, end, whole = number.value, number.end, number.whole
    if scale := _SCALE.match(text, end):
        value, end, whole = value * 10 ** SCALES[scale[1].lower()], scale.end(), False
    elif money and (scale := _MONEY_SCALE.match(text, end)):
        value, end, whole = value * 1000 ** (scale.lastindex or 1), scale.end(), False
    units, after = unit_at(text, end, begun=money)
    if money and after == end:  # `$5 USD`
        again, behind = unit_at(text, end)
        if same := tuple(unit for unit in again if any(unit.dimension == mine.dimension for mine in money)):
            units, after = same, behind
    return _Mention(Quantity(value, units, text[start:after].strip(), whole), start, after)


# One number, or several?

_LISTED = re.compile(r"(?:\s*[^\W\d_]+){0,3}\s*(?:[,;&|]|\band\b|\bor\b|\\quad|\\qquad|\n)[\s,;]*(?:and|or)?\s*")
_RANGE = re.compile(r"\s*(?:-|—|to|through|until|\.\.+|…|~|\\sim|\\ldots|\\dots)\s*")
_RATIO = re.compile(r":|\s+:\s+")
_REMARK = re.compile(r"\s*\([^()\d]*")  # 5 kg (11 lb)
_SUM = re.compile(r"\s*(?:and\s*)?")


def _alone(text: str, found: list[_Mention], at: int) -> tuple[int, int]:
    """The first and the last of the mentions that make one quantity. Raises NotOneError where they make several."""
    first = last = at
    while first and _is_sum(text, found[first - 1], found[first]):
        first -= 1
    while last + 1 < len(found) and _is_sum(text, found[last], found[last + 1]):
        last += 1
    for one, other in ((first - 1, first), (last, last + 1)):
        if one >= 0 and other < len(found):
            _refuse_several(text[found[one].end : found[other].start], found[one].quantity, found[other].quantity)
    return first, last


def _is_sum(text: str, one: _Mention, other: _Mention) -> bool:
    """Whether two mentions side by side are one quantity: feet and inches."""
    return bool(_SUM.fullmatch(text, one.end, other.start)) and _smaller(one.quantity, other.quantity)


def _smaller(one: Quantity, other: Quantity) -> bool:
    """Whether the second has a smaller unit of the same dimension."""
    return any(
        mine.dimension == yours.dimension and yours.factor < mine.factor and not mine.offset
        for mine in one.units
        for yours in other.units
    )


def _refuse_several(between: str, one: Quantity, other: Quantity) -> None:
    if one.value == other.value and one.units == other.units:
        return
    if _RANGE.fullmatch(between):
        raise NotOneError("a range where one number is asked for")
    if _RATIO.fullmatch(between):
        raise NotOneError("a ratio or time where a number is asked for")
    if not between.strip() and other.text[0] in "+-":
        raise NotOneError("a formula where a number is asked for")
    if not between.strip() or _LISTED.fullmatch(between):
        raise NotOneError("several numbers where one is asked for")


_FUNCTION = r"sqrt|log|ln|sin|cos|tan|exp|d?frac|tfrac|binom|pm|mp|times|cdot|div|pi"
_PART_BEFORE = re.compile(rf"(?:[*/^√÷±∓π_]|\\(?:{_FUNCTION})|\b(?:sqrt|log|ln|sin|cos|tan|exp))\s*[{{(]*\s*\Z")
_TERM_BEFORE = re.compile(r"(?:(?<![A-Za-z\\])[A-Za-z]|[)}\]])\s*\Z")
_PART_AFTER = re.compile(
    r"\s*(?:[*/^!÷√±π]|\\(?:pi|sqrt|[dt]?frac|cdot|times|log|ln|sin|cos|tan|pm|div|binom|[bp]?mod|exp|cup|theta)"
    r"|[-+]\s*(?:[A-Za-z\\(]))"
)
_VARIABLE_AFTER = re.compile(r"[A-Za-z](?![A-Za-z])|\s+[b-zB-HJ-Z](?![A-Za-z'])|[({]")
_BOUND_BEFORE = re.compile(
    r"(?:[<>≤≥≠]|\bat (?:least|most)|\b(?:more|less|greater|fewer|higher|lower) than|\bup to)\s*\Z", re.IGNORECASE
)
_BOUND_AFTER = re.compile(r"\s*(?:<(?!\|)|[>≤≥≠]|\+\s*\Z|or (?:more|less|fewer|greater|higher|above|below)\b)")


def _not_part(text: str, start: int, end: int, has_unit: bool) -> None:
    """Raise NotOneError where the number at this place is a bound, or a part of a formula."""
    before = text[max(0, start - 40) : start]
    if _BOUND_BEFORE.search(before) or _BOUND_AFTER.match(text, end):
        raise NotOneError("a bound where a number is asked for")
    signed = text[start] in "+-"
    if (
        _PART_BEFORE.search(before)
        or (signed and _TERM_BEFORE.search(before))
        or _PART_AFTER.match(text, end)
        or (not has_unit and _VARIABLE_AFTER.match(text, end))
    ):
        raise NotOneError("a formula where a number is asked for")


def _total(text: str, parts: list[_Mention]) -> Quantity:
    """One quantity: the sum of the parts, in the first one's unit."""
    first = parts[0].quantity
    if len(parts) == 1:
        return first
    value, kept = first.value, first.units
    for part in parts[1:]:
        pairs = [(mine, yours) for mine in kept for yours in part.quantity.units if mine.dimension == yours.dimension]
        mine, yours = next(pair for pair in pairs if pair[1].factor < pair[0].factor)
        value += part.quantity.value * yours.factor / mine.factor
        kept = (mine,)
    return Quantity(value, kept, text[parts[0].start : parts[-1].end].strip())
