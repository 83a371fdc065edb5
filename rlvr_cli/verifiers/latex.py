r"""An answer rewritten so that a LaTeX parser reads all of it: Unicode, spacing, separators, plain notation.

Rewriting by patterns alone; each keeps the value. What it does not know it leaves as it is.
"""

import re

from rlvr_cli.verifiers.numbers import ascii_digits, join_separators

_SYMBOLS = {
    "π": r"\pi ", "∞": r"\infty ", "×": r"\times ", "·": r"\cdot ", "÷": "/", "≤": r"\le ", "≥": r"\ge ",
    "≠": r"\ne ", "±": r"\pm ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "°": r"^\circ ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

_REWRITES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"√\s*(\d+|[A-Za-z]|\([^()]*\))"), r"\\sqrt{\1}"),
    (re.compile(r"(?<!\\)\bsqrt\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([-+]?\d+)(?![\w.])"), r"\1\\times 10^{\2}"),
    (re.compile(r"\s*(?:\bpercentage|\bpercent|\bpct|(?<!\\)%)(?![A-Za-z])"), r"\\%"),
    (re.compile(r"\\(?:boxed|fbox)\s*\{"), "{"),  # a box inside the box
    (re.compile(r"\\mathrm\s*\{\s*([ei])\s*\}"), r"\1"),
    (re.compile(r"\s*,?\s*(?:\\text\s*\{\s*and\s*\}|(?<![\\A-Za-z])and(?![A-Za-z]))\s*"), ", "),
    (re.compile(r"^\s*\\?[$€£¥₹]\s*(?=[\d.][\d.,]*\s*$)"), ""),
]
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d]| \d|/)")
_EUROPEAN = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d+(?![\d.,])")
_GROUPED = re.compile(r"(?<![\d.,(\[{])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_MIXED = re.compile(r"(?<![\d./])(\d{1,9}) (\d{1,9})/(\d{1,9})(?![\d.])")
_REPEATING = re.compile(r"(?<!\d)(\d{0,30})\.(\d{0,30})\\overline\s*\{(\d{1,30})\}")
_WORDS = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mbox|operatorname)\s*\{([^{}]*)\}")


def to_latex(text: str) -> str:
    """The answer as LaTeX."""
    text = re.sub(r"[^\S\n]+", " ", join_separators(ascii_digits(text)))
    text = re.sub(r"\s*\n\s*", "\n", text)  # the patterns below are quadratic in white space
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda run: f"^{{{run[0].translate(_SUPERSCRIPTS)}}}", text)
    for symbol, latex in _SYMBOLS.items():
        text = text.replace(symbol, latex)
    text = _SPACED.sub(lambda number: number[0].replace(" ", ""), text)
    text = _EUROPEAN.sub(lambda number: number[0].replace(".", "").replace(",", "."), text)
    text = _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
    text = _MIXED.sub(_mixed, text)
    text = _REPEATING.sub(_repeating, text)
    for pattern, latex in _REWRITES:
        text = pattern.sub(latex, text)
    return text


def _mixed(match: re.Match[str]) -> str:
    """`2 2/3` is two and two thirds; with a numerator over its denominator it is no mixed number."""
    whole, numerator, denominator = match.groups()
    return rf"({whole}+\frac{{{numerator}}}{{{denominator}}})" if int(numerator) < int(denominator) else match[0]


def _repeating(match: re.Match[str]) -> str:
    """`0.1\\overline{6}` as a fraction."""
    whole, once, again = match.groups()
    numerator = int(whole + once + again) - int(whole + once or "0")
    return rf"\frac{{{numerator}}}{{{10 ** len(once) * (10 ** len(again) - 1)}}}"


def words(text: str) -> str:
    """A text answer for comparison: out of `\\text{...}`, dollars and a final period; words in small letters."""
    text = _WORDS.sub(r"\1", text).strip().strip("$").strip().rstrip(".")
    text = " ".join(text.split())
    if len(text) == 3 and text[0] == "(" and text[1].isalpha() and text[2] == ")":
        return text[1]  # the label of an option
    return text.lower() if text.replace(" ", "").isalpha() else text
