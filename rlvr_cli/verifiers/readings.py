r"""An answer taken apart for comparison: its text, plain number, unit, name (`x =`), value in LaTeX, and any prose.

By patterns in linear time; nothing is parsed as mathematics here. What is read once is kept: golds, and answers that
a group has in common.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from rlvr_cli.verifiers.intervals import union
from rlvr_cli.verifiers.latex import canonical, collapsed, to_latex, unwrapped
from rlvr_cli.verifiers.units import SCALES, Unit, plain_units, unit_at

LONGEST = 2000  # characters of an answer that are taken apart


@dataclass(frozen=True)
class Reading:
    """An answer taken apart.

    text: out of its wrapping. canonical: for comparing as text. number: its exact value, when it is a plain number;
    decimal: and has a decimal point. comma: its value when its only comma is a decimal one.
    value: the LaTeX without unit, name and condition. name: the left side of `x = 5`. units: the unit in all its
    meanings. several: it is a list or offers alternatives. prose: its words, when it is more than mathematics.
    union: it is inequalities joined by `or`, its value the union of intervals. modulus: the m of `r mod m`.
    """

    text: str
    canonical: str
    number: Fraction | None = None
    decimal: bool = False
    comma: Fraction | None = None
    value: str = ""
    name: str = ""
    units: tuple[Unit, ...] = ()
    several: bool = False
    prose: tuple[str, ...] = ()
    union: bool = False
    modulus: str = ""


_NAMED_SETS = dict.fromkeys(("all real numbers", "all reals", "\\mathbb{R}"), r"(-\infty,\infty)")
_NAMED_SETS |= dict.fromkeys(("no solution", "no solutions", "empty set", "the empty set"), r"\emptyset")
_MODULUS = re.compile(
    r"(?<=[\d\s}])\s?(?:\\pmod\s?\{?|\\[bp]?mod\s?\{?|\((?:\\text\s?\{)?\s?mod\s?\}?\s?)(\d+)\s?[})]?\s?\Z"
)
_NUMBER = re.compile(r"([-+]?)(?:([1-9]\d{0,2}(?:,\d{3})+|\d+)(\.\d+)?|(\.\d+))\.?")
_RATIO = re.compile(r"([-+]?)(\d+)\s?/\s?(\d+)")
_FRACTION = re.compile(r"([-+]?)\s?\\[dt]?frac\s?(?:\{(-?\d+)\}\s?\{(-?\d+)\}|(\d)(\d))")
_DECIMAL_COMMA = re.compile(r"([-+]?)(\d+),(\d{1,2}|\d{4,})")


def reading(text: str) -> Reading:
    """The answer taken apart. A long text is only that, and not kept."""
    if len(text) <= LONGEST:
        return _reading(text)
    plain = unwrapped(text)
    return _reading(plain) if len(plain) <= LONGEST else Reading(plain, canonical(plain))


@lru_cache(maxsize=8192)
def _reading(text: str) -> Reading:
    plain = unwrapped(text)
    plain = collapsed(plain)
    number = plain_number(plain)
    if number is not None:
        return Reading(plain, canonical(plain), number, "." in plain.rstrip("."), value=to_latex(plain))
    if (either := union(plain)) is not None:
        return Reading(plain, canonical(plain), value=to_latex(either), union=True)
    if (named := _NAMED_SETS.get(canonical(plain))) is not None:
        return Reading(plain, canonical(plain), value=named)
    comma = _DECIMAL_COMMA.fullmatch(plain)
    residue = _MODULUS.search(plain)
    value, units = split_unit(plain[: residue.start()] if residue else plain)
    number = plain_number(value) if value != plain else None
    latex = unwrapped(to_latex(_CONDITION.sub("", value)))
    name, latex = _named(latex)
    return Reading(
        plain,
        canonical(plain),
        number,
        number is not None and "." in value,
        Fraction(f"{comma[1]}{comma[2]}.{comma[3]}") if comma else None,
        latex,
        name,
        units,
        several(plain),
        prose(latex),
        modulus=residue[1] if residue else "",
    )


def plain_number(text: str) -> Fraction | None:
    r"""The value of an integer, decimal, `a/b` or `\frac{a}{b}`, thousands separated or not, when all is certain."""
    if text.isascii() and text.isdigit():
        return Fraction(int(text)) if len(text) < 300 else None
    if len(text) > 300 or not text.isascii():
        return None
    if match := _NUMBER.fullmatch(text):
        sign, whole, point, bare = match.groups()
        value = Fraction(((whole or "0").replace(",", "")) + (point or bare or ""))
    elif match := _RATIO.fullmatch(text):
        sign, above, below = match.groups()
        if not int(below):
            return None
        value = Fraction(int(above), int(below))
    elif match := _FRACTION.fullmatch(text):
        sign = match[1]
        above, below = int(match[2] or match[4]), int(match[3] or match[5])
        if not below:
            return None
        value = Fraction(above, below)
    else:
        return None
    return -value if sign == "-" else value


# Units

_WRAPPER = r"\\(?:text(?:rm|bf|it|normal)?|math(?:rm|bf|it)|mbox|operatorname|rm|unit)"
_TAIL_START = re.compile(
    rf"(?<=[\d\])}}!A-Za-z.])(?:\\[,;:! ]|\s|~)*(?:{_WRAPPER}\s?\{{|\^\s?\{{?\s?\\circ|°)"
    r"|(?<=[\d})\]])(?:\\[,;:! ]|~)*\s*(?<!\\)(?=[A-Za-zµ]{2})"
)
# one way only to read each character, so that it cannot backtrack
_TAIL = re.compile(
    rf"(?:{_WRAPPER}\s?\{{[^{{}}]*\}}|\^\s?\{{?\s?-?\d(?:\s?\}})?|\^\s?\{{?\s?\\circ(?:\s?\}})?|\\(?:cdot|times)(?![A-Za-z])"
    r"|\\[,;:! ]|[A-Za-zµ°\s./·*()\-']|\d(?=[\s/]|$))*"
)
_FLAT = re.compile(rf"{_WRAPPER}\s?\{{([^{{}}]*)\}}")
_NO_UNIT = re.compile(
    r"\b(?:and|or|for|if|when|where|with|all|is|are|mod|choose|pi|sqrt|sin|cos|tan|log|ln|exp|to|percent|pct|percentage|"
    r"only|not|otherwise|but|am|pm|AM|PM|st|nd|rd|th|even|odd)\b|%",
)
_MONEY = re.compile(r"(-?)\s?(?:\\\$|[$€£¥₹]|\\text\s?\{\s?\\?\$\s?\}|\\(?:euro|pounds?)(?![A-Za-z]))\s?(?=-?[\d.])")
_COUNTED = re.compile(r"(-?\d[\d.,/]*)\s?(?![万億亿])[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{1,8}")  # 12个
_FUNCTION = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
LONGEST_UNIT = 100  # characters of a unit or of words behind a number
FEW = 6  # words behind a number that say what is counted, at most


def split_unit(text: str) -> tuple[str, tuple[Unit, ...]]:
    r"""An answer's value, and its unit in all its meanings; words that are no unit (`12 apples`) go as well.

    `\$18.90`, `15\mbox{ cm}^2`, `64 square feet`, `30^\circ`.
    """
    if counted := _COUNTED.fullmatch(text):
        return counted[1], ()
    money = _MONEY.match(text)
    if money and not re.search(r"[$€£¥₹]", text[money.end() :]):
        sign = {"\\": "$"}.get(money[0].lstrip("- ")[:1], money[0].strip("- ")[:1])
        if "euro" in money[0] or "pound" in money[0]:
            sign = "€" if "euro" in money[0] else "£"
        units, _ = unit_at(f"1 {sign}", 1)
        rest, more = split_unit(text[money.end() :])
        return money[1] + rest, more or units
    start = _TAIL_START.search(text)
    if start is None or _depth(text, start.start()) or not _TAIL.fullmatch(text, start.start()):
        return text, ()
    value, tail = text[: start.start()].strip(), text[start.start() :]
    if len(tail) > LONGEST_UNIT:
        return text, ()
    flat = _FLAT.sub(r" \1 ", tail) if "\\" in tail else tail
    if _NO_UNIT.search(flat) or ("circ" in tail and _FUNCTION.search(value)):
        return text, ()
    flat = plain_units(re.sub(r"\}\s+\^", "}^", _FLAT.sub(lambda it: it[1].rstrip() if it[1].strip() else "", tail)))
    flat = re.sub(r"\s+\^", "^", flat).strip(" .")
    units, end = unit_at(flat, 0)
    if units and not flat[end:].strip(" .()"):
        return value, units
    names = re.findall(r"[A-Za-z]{2,}", flat)
    if names and names[0].lower().removesuffix("s") in SCALES:
        return _scaled(text, value, flat, names[0])
    if not names or len(names) > FEW or max(map(len, names)) < 3 or any(name.isupper() for name in names):
        return text, ()
    if "\\" not in tail and not tail[:1].isspace():
        return text, ()  # `3abc` is a product
    return (text, ()) if re.search(r"\d", re.sub(r"\^\{?-?\d\}?", "", flat)) else (value, ())


def _scaled(text: str, value: str, flat: str, scale: str) -> tuple[str, tuple[Unit, ...]]:
    """`70 thousand` and `3.5 million dollars`; the text as it is when the number is no plain one."""
    number = plain_number(value)
    rest, units = split_unit(f"1 {flat.partition(scale)[2]}")
    if number is None or rest.strip() != "1":
        return text, ()
    number *= 10 ** SCALES[scale.lower().removesuffix("s")]
    return str(number) if number.denominator == 1 else f"\\frac{{{number.numerator}}}{{{number.denominator}}}", units


def _depth(text: str, end: int) -> int:
    """How many braces and brackets are open at a place."""
    depth = 0
    for letter in text[:end]:
        depth += (letter in "{([") - (letter in "})]")
    return depth


def units_fit(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> Fraction | None:
    """The factor from the second unit to the first; None when they measure different things."""
    factors = [
        yours.factor / mine.factor
        for mine in one
        for yours in other
        if mine.dimension == yours.dimension and mine.offset == yours.offset
    ]
    return None if not factors else Fraction(1) if 1 in factors else factors[0]


# Names, conditions, lists, prose

_CONDITION = re.compile(
    r"\s?(?:,|\\[,;:! ]|\\q?quad)*\s?(?:\\(?:text|mbox|textrm)\s?\{\s?|(?<![A-Za-z\\]))"
    r"(?:for (?:all|any|every|each|some)|where)\b(?!.*(?:,|and|or)\s*[A-Za-z]\s*=).*$",
    re.DOTALL,
)
_NAME = re.compile(r"([A-Za-z](?:_\s?(?:\{\s?\w+\s?\}|\w))?|\\[a-z]+)\s?(?:=|\\approx(?![a-z])|\\in(?![a-z]))\s?(?=\S)")
_NAME_LAST = re.compile(r"([^=<>A-Za-z\\]+)=\s?([A-Za-z])")  # 5 = x
_NAMES_THAT_ARE_NONE = ("\\frac", "\\sqrt", "\\pi", "\\pm", "\\infty", "\\left", "\\right", "\\text", "\\mathrm")


def _named(latex: str) -> tuple[str, str]:
    """The name of `x = 5` and the value, when there is one equals sign."""
    match = _NAME.match(latex)
    if match is None and (turned := _NAME_LAST.fullmatch(latex)):
        return turned[2], turned[1]
    if match is None or match[1] in _NAMES_THAT_ARE_NONE or re.search(r"[=<>]|\\(?:approx|in|le|ge|lt|gt|ne)(?![a-z])",
                                                                       latex[match.end() :]):  # fmt: skip
        return "", latex
    return re.sub(r"[{}\s]", "", match[1]), latex[match.end() :]


_AND_OR = re.compile(r"(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|\\(?:pm|mp|lor|vee)(?![A-Za-z])|±")


def several(text: str) -> bool:
    """Whether an answer names more than one value: a list outside brackets, `and`, `or`, plus or minus, a set."""
    if _AND_OR.search(text) or text.lstrip().startswith("\\{"):
        return True
    if "," not in text and ";" not in text:
        return False
    depth = 0
    joined = re.sub(r"(?<=\d)(?:,(?=\d{3}(?!\d))|\{,\}|\\?,?\\[,;!:](?=\s?\d))", "", re.sub(r"\\[,;:!]", "", text))
    for letter in joined:
        depth += (letter in "{([") - (letter in "})]")
        if letter in ",;" and depth <= 0:
            return True
    return False


_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s?\{[^{}]*\}|\\operatorname\s?\{[^{}]*\}")
_COMMAND = re.compile(r"\\(?!text|mbox|mathrm|mathbf)[A-Za-z]+")
_WORD = re.compile(r"(?<![\\A-Za-z_])[A-Za-z][a-z']{2,}(?![A-Za-z(])")
_MATHEMATICS = {
    "sqrt",
    "sin",
    "cos",
    "tan",
    "log",
    "exp",
    "inf",
    "infinity",
    "and",
    "arcsin",
    "arccos",
    "arctan",
    "cot",
}
_MATHEMATICS |= {"sec", "csc", "frac", "sinh", "cosh", "tanh", "mod", "max", "min", "gcd", "lcm", "det", "binom"}


def prose(latex: str) -> tuple[str, ...]:
    """The words of an answer that are no mathematics, in small letters."""
    if latex.isascii() and not any(letter.isalpha() for letter in latex):
        return ()
    text = _COMMAND.sub(" ", _ENVIRONMENT.sub(" ", latex))
    text = re.sub(r"\\(?:text\w*|mbox|math\w+)", " ", text)
    return tuple(word.lower() for word in _WORD.findall(text) if word.lower() not in _MATHEMATICS)
