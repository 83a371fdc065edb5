"""Numbers as people and models write them, read without evaluating anything.

Currency signs, thousands separators and a trailing period are taken off: `$1,234.50.` is 1234.5. A number keeps its
exact value as a fraction; one longer than LONGEST characters, or with an exponent beyond ±LARGEST, is no number.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

LONGEST = 300
LARGEST = 400  # beyond the range of a float

# Unicode that stands for ASCII: minus signs, full-width digits and punctuation.
_ASCII = str.maketrans("−‒–﹣－０１２３４５６７８９．，％", "-----0123456789.,%")
_SEPARATORS = re.compile(r"(?<=\d)(?:\\,|\\!|\{,\}|,\\! ?|[\u00a0\u2009\u202f](?=\d))(?=\\!|\d)")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])"  # a letter of another script may stand right before a number
    r"(?P<sign>[-+]?)[ ]?(?:\\?[$€£¥₹]|\\text\s*\{\s*\\?\$\s*\})?[ ]?(?P<inner>-?)"
    r"(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))"
    r"(?P<point>\.\d+)?"
    r"(?P<exponent>[eE][-+]?\d+(?![\w])|\s*(?:\\times|×|\*)\s*10\s*\^\s*(?:\{\s*)?[-+]?\d+(?:\s*\})?)?"
    r"(?:\s*/\s*(?P<denominator>\d+)(?![\d.]))?"
)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(-?\d+)\s*\}")


@dataclass(frozen=True)
class Number:
    """A number found in a text: its exact value, how it was written, and where it ends."""

    value: Fraction
    text: str
    start: int
    end: int
    whole: bool  # written as an integer, without point, exponent or denominator


def ascii_digits(text: str) -> str:
    """The text with ASCII digits, minus signs, points and commas in place of their Unicode look-alikes."""
    return text.translate(_ASCII)


def join_separators(text: str) -> str:
    """The text without the LaTeX and Unicode spacing between digits: `1\\,234` and `1{,}234` are 1234."""
    return _SEPARATORS.sub("", text)


def plain(text: str) -> str:
    """The text with ASCII digits and signs, LaTeX spacing inside numbers taken out, and `\\frac{a}{b}` as `a/b`."""
    text = join_separators(ascii_digits(text))
    return _FRACTION.sub(r"\1/\2", text)


def numbers(text: str) -> list[Number]:
    """The numbers of a text in order; the text is made plain first."""
    found = []
    for match in _NUMBER.finditer(plain(text)):
        value = _value(match)
        if value is not None:
            whole = not (match["point"] or match["exponent"] or match["denominator"])
            found.append(Number(value, match[0].strip(), match.start(), match.end(), whole))
    return found


def only_number(text: str) -> Number | None:
    """The number that a text is, apart from currency, a percent sign, a trailing period and LaTeX dollars around it."""
    text = plain(text.strip().removesuffix(".").strip()).strip("*").strip()
    if text.startswith("$") and text.endswith("$"):
        text = text[1:-1].strip()
    text = re.sub(r"\s*\\?%$", "", text)
    found = numbers(text)
    if len(found) != 1 or found[0].start != 0 or found[0].end != len(text):
        return None
    return found[0]


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match[0]) > LONGEST:
        return None
    exponent = 0
    if match["exponent"]:
        exponent = int(re.sub(r".*10\s*\^|[eE{}\s]", "", match["exponent"])[:LONGEST])
        if abs(exponent) > LARGEST:
            return None
    value = Fraction((match["whole"].replace(",", "") or "0") + (match["point"] or "")) * Fraction(10) ** exponent
    if match["denominator"]:
        denominator = int(match["denominator"])
        if denominator == 0:
            return None
        value /= denominator
    return -value if (match["sign"] == "-") != (match["inner"] == "-") else value
