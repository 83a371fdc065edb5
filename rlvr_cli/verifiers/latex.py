r"""An answer rewritten so that a LaTeX parser reads all of it: Unicode, spacing, separators, plain notation, wrapping.

Rewriting by patterns alone, in linear time; each keeps the value. What it does not know it leaves as it is.
"""

import re

from rlvr_cli.verifiers.numbers import ascii_digits, join_separators

_SYMBOLS = {
    "π": r"\pi ", "∞": r"\infty ", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "≤": r"\le ",
    "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "°": r"^\circ ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}", "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}", "⅐": r"\frac{1}{7}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}",
    "⅞": r"\frac{7}{8}", "⅑": r"\frac{1}{9}", "⅒": r"\frac{1}{10}", "⁄": "/", "∕": "/", "（": "(", "）": ")",
    "［": "[", "］": "]", "＝": "=", "＋": "+", "∅": r"\emptyset ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ",
}  # fmt: skip
_SYMBOL = re.compile("[" + "".join(map(re.escape, _SYMBOLS)) + "]")
_VULGAR = re.compile(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUBSCRIPT = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

_REWRITES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"√\s*(\d+(?:\.\d+)?|[A-Za-z]|\([^()]*\))"), r"\\sqrt{\1}"),
    (re.compile(r"(?<!\\)\bsqrt\s?\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([-+]?\d+)(?![\w.])"), r"\1\\times 10^{\2}"),
    (re.compile(r"\s?(?:\bpercentage|(?<![A-Za-z\\])percent|(?<![A-Za-z\\])pct|(?<!\\)%)(?![A-Za-z])"), r"\\%"),
    (re.compile(r"\\(?:boxed|fbox)\s?\{"), "{"),  # a box inside the box
    (re.compile(r"\\(?:mathrm|text)\s?\{\s?([ei])\s?\}"), r"\1"),
    (re.compile(r"\s?,?\s?(?:\\(?:text|textrm|mbox)\s?\{\s?and\s?\}|(?<![\\A-Za-z])and(?![A-Za-z]))\s?"), ", "),
    (re.compile(r"^\s?\\?[$€£¥₹]\s?(?=[\d.][\d.,]*\s?$)"), ""),
    (re.compile(r"\+\s?-(?=\s?[\d.\\A-Za-z(])"), "-"),
    (re.compile(r"\\varnothing(?![A-Za-z])"), r"\\emptyset"),
    (re.compile(r"\\tfrac|\\dfrac|\\cfrac"), r"\\frac"),
]
_DECORATIONS = [  # no part of the value
    (re.compile(r"\\(?:underline|boldsymbol|bm|emph|mathbf|mathit|mathsf)\s?\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:bf|it|large|Large|displaystyle|color\s?\{[a-z]*\})(?![A-Za-z])\s?"), ""),
]
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d]| \d|/)")
_EUROPEAN = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d+(?![\d.,])")
_GROUPED = re.compile(r"(?<![\d.,(\[{])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_MIXED = re.compile(r"(?<![\d./^_])(\d{1,9}) (\d{1,9})/(\d{1,9})(?![\d.]| ?/| \d)")
_MIXED_LATEX = re.compile(
    r"(?<![\d./^_{])(\d{1,9}) ?(?:\\frac|\\dfrac|\\tfrac) ?\{(\d{1,9})\} ?\{(\d{1,9})\}(?= ?\\?%)"
)
_REPEATING = re.compile(r"(?<!\d)(\d{0,30})\.(\d{0,30})(?:\\overline|\\bar)\s?(?:\{(\d{1,30})\}|(\d))")
_REPEATING_DOTS = re.compile(r"(?<!\d)(\d{0,30})\.(\d{0,30})\\dot\s?\{?(\d)\}?(?:(\d{0,30})\\dot\s?\{?(\d)\}?)?")
_GOING_ON = re.compile(r"(?<![\d.])(\d{0,9})\.(\d{0,9}?)(\d{1,6}?)\3{2,9}(?:\.\.\.|…|\\[lc]?dots(?![A-Za-z]))")
_WORDS = re.compile(r"\\(?:text|textbf|textit|textrm|textnormal|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")


def to_latex(text: str) -> str:
    """The answer as LaTeX."""
    text = join_separators(ascii_digits(collapsed(text)))
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda run: f"^{{{run[0].translate(_SUPERSCRIPTS)}}}", text)
        text = _SUBSCRIPT.sub(lambda run: f"_{{{run[0].translate(_SUBSCRIPTS)}}}", text)
        text = _VULGAR.sub(" ", text)
        text = re.sub(r"(?<![\d.])(\d{1,9}) ?([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])", lambda it: f"({it[1]}+{_SYMBOLS[it[2]]})", text)
        text = _SYMBOL.sub(lambda symbol: _SYMBOLS[symbol[0]], text)
    text = _SPACED.sub(lambda number: number[0].replace(" ", ""), text)
    text = _EUROPEAN.sub(lambda number: number[0].replace(".", "").replace(",", "."), text)
    text = _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
    text = _MIXED.sub(_mixed, text)
    text = _MIXED_LATEX.sub(_mixed, text)
    if "\\overline" in text or "\\bar" in text:
        text = _REPEATING.sub(_repeating, text)
    if "\\dot" in text:
        text = _REPEATING_DOTS.sub(_repeating_dots, text)
    if "..." in text or "dots" in text or "…" in text:
        text = _GOING_ON.sub(_repeating, text)
    for pattern, latex in (*_DECORATIONS, *_REWRITES) if "\\" in text else _REWRITES:
        text = pattern.sub(latex, text)
    return text


def collapsed(text: str) -> str:
    """The text with one space or line end for each run of them: patterns would be slow in long ones."""
    return re.sub(r" ?\n[ \n]*", "\n", re.sub(r"[^\S\n]+", " ", text))


def _mixed(match: re.Match[str]) -> str:
    """`2 2/3` is two and two thirds; with a numerator over its denominator it is no mixed number."""
    whole, numerator, denominator = match.groups()
    return rf"({whole}+\frac{{{numerator}}}{{{denominator}}})" if int(numerator) < int(denominator) else match[0]


def _repeating(match: re.Match[str]) -> str:
    r"""`0.1\overline{6}` as a fraction."""
    return _period(match[1], match[2], match[3] or match[match.re.groups])


def _repeating_dots(match: re.Match[str]) -> str:
    r"""`0.\dot{1}4285\dot{7}` as a fraction: the period goes from dot to dot."""
    return _period(match[1], match[2], match[3] + (match[4] or "") + (match[5] or ""))


def _period(whole: str, once: str, again: str) -> str:
    numerator = int(whole + once + again) - int(whole + once or "0")
    return rf"\frac{{{numerator}}}{{{10 ** len(once) * (10 ** len(again) - 1)}}}"


def words(text: str) -> str:
    r"""A text answer for comparison: out of `\text{...}`, braces, dollars, a final period; words in small letters."""
    text = _WORDS.sub(r"\1", unwrapped(text)) if "\\" in text or "{" in text else text
    text = " ".join(unwrapped(text).split())
    if len(text) == 3 and text[0] == "(" and text[1].isalpha() and text[2] == ")":
        return text[1]  # the label of an option
    return text.lower() if len(text) > 1 and text.replace(" ", "").isalpha() else text


LAYERS = 8  # wrappings that are taken off, at most
LONGEST = 20_000  # characters of a text out of which wrappings are taken

_PAIRS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`"))


def unwrapped(text: str) -> str:
    r"""The answer out of dollars, `\(...\)`, braces around all of it, a final period or a backslash that was left."""
    if len(text) > LONGEST:
        return text.strip()
    for _ in range(LAYERS):
        before = text
        text = text.strip()
        if text.endswith(".") and not text.endswith(".."):
            text = text[:-1].rstrip()
        if text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1].rstrip()
        if text.startswith("{") and text.endswith("}") and _closes(text, "{", "}") == len(text) - 1:
            text = text[1:-1]
        for opener, closer in _PAIRS:
            if text.startswith(opener) and text.endswith(closer) and len(text) > len(opener) + len(closer):
                inner = text[len(opener) : -len(closer)]
                if opener not in inner and closer not in inner:
                    text = inner
        if text == before:
            break
    return _one_pair(text) if text.startswith("((") else text


def _closes(text: str, opener: str, closer: str) -> int:
    """Where the first character's brace is closed; -1 when it is not. Escaped braces do not count."""
    depth = 0
    for match in re.finditer(r"\\.|[{}()]", text, re.DOTALL):
        if match[0] == opener:
            depth += 1
        elif match[0] == closer:
            depth -= 1
            if depth == 0:
                return match.start()
    return -1


def _one_pair(text: str) -> str:
    """`(((7)))` with one pair of parentheses, in linear time however many there are."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    for place, letter in enumerate(text):
        if letter == "(":
            opened.append(place)
        elif letter == ")" and opened:
            pairs[opened.pop()] = place
    layers = 0
    while pairs.get(layers) == len(text) - 1 - layers:
        layers += 1
    return text[layers - 1 : len(text) - layers + 1] if layers > 1 else text


_SPACES = re.compile(r"(?<![0-9A-Za-z,])\s+|\s+(?![0-9A-Za-z])|(?<=[^\d],)\s+|(?<=,)\s+(?!\d{3}(?!\d))")
_SPACING = re.compile(r"\\[,;:> ]|\\q?quad(?![A-Za-z])|~")
_NEGATIVE_SPACE = re.compile(r"\\!\s?")
_SIZES = re.compile(r"\\(?:left|right|bigl?|bigr|Bigl?|Bigr)(?![A-Za-z])|\\displaystyle(?![A-Za-z])")
_FRACTIONS = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)(?!\d)")


def canonical(text: str) -> str:
    r"""The answer for comparing as text: spacing, sizes and `\dfrac` do not matter. Spaces between digits do."""
    text = words(text)
    if "\\" in text:
        text = _SIZES.sub("", _SPACING.sub(" ", _NEGATIVE_SPACE.sub("", text)))
        text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", _FRACTIONS.sub(r"\\frac", text))
    return _SPACES.sub("", text.strip())
