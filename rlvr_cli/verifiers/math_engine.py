r"""Math-Verify (Hugging Face, 0.9), called so that it reads all of an answer, keeps no time, and hides no failure.

- Its own time limits are off: they work by SIGALRM. What calls this runs in a process that can be killed.
- An answer is boxed, since a bare LaTeX one is not read otherwise; gold answers are parsed once each.
- Left to search, it takes the last number of a list, of an unparsed formula or of a mixed number: it is only given
  what is the answer, and a bare number is looked for only where there is no LaTeX at all.
- Where it calls two closed numbers equal, they must agree when evaluated as well (it calls 1/2004! and 1/2006! equal).

No text is evaluated: a plain expression reaches sympy's parser only when it is made of digits and operators alone.
"""

import logging
import re
from functools import lru_cache
from typing import Any

from rlvr_cli.verifiers.latex import to_latex

ROUNDING = 6  # decimal places to which a decimal is compared
DISAGREE = "Math-Verify calls it equal, but the numbers differ"
_MATH_SPAN = re.compile(r"\$|\\\(|\\\[")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_TEXT = re.compile(r"\\(?:text|textbf|mbox|mathrm|operatorname|begin|end)\s*\{[^{}]*\}")
_FUNCTIONS = {"sqrt", "sin", "cos", "tan", "log", "exp", "pi"}


class UnreadableGoldError(ValueError):
    """The record's own answer is no mathematics."""


class NoMathematicsError(ValueError):
    """There is nothing in the answer that could be compared."""


def equal(gold: str, answer: str, searched: bool = False, rounding: int = ROUNDING, strict: bool = True) -> str:
    """Why an answer is not equal to the gold answer; nothing when it is.

    `searched`: the answer lies somewhere in the text. Raises UnreadableGoldError, NoMathematicsError, and whatever
    Math-Verify raises.
    """
    import math_verify

    golds = list(_parsed_gold(gold))
    if not golds:
        raise UnreadableGoldError("the record's own answer cannot be read as mathematics; verifier text compares texts")
    answers = parse(answer, searched)
    if not answers or all(isinstance(value, str) for value in answers):
        if searched:
            raise NoMathematicsError("there is no mathematics in the text")
        if not answers:
            return "the answer cannot be read as mathematics"
    if any(_undefined(value) for value in answers):
        return "the answer is not defined"
    settings = {"float_rounding": rounding, "strict": strict, "allow_set_relation_comp": True}
    if not math_verify.verify(golds, answers, timeout_seconds=None, raise_on_error=True, **settings):
        return "not equal to the answer"
    if rounding == ROUNDING and "%" not in gold + answer and not _agree(golds[0], answers[0]):
        return DISAGREE
    return ""


@lru_cache(maxsize=4096)
def _parsed_gold(gold: str) -> tuple[Any, ...]:
    return tuple(parse(gold))


def parse(answer: str, searched: bool = False) -> list[Any]:
    """The values that Math-Verify reads in an answer: at most one expression, and its text."""
    import math_verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns that its own time limits are off
    text = readable(answer)
    latex, bare = _latex_settings(_LETTER_AS_UNIT.fullmatch(answer) is not None), math_verify.ExprExtractionConfig()
    for kinds in [[latex, bare]] if searched else [[latex], [bare]]:
        values = list(math_verify.parse(text, kinds, parsing_timeout=None, raise_on_error=True))
        if values:
            return values
    return []


# `10 m`: Math-Verify takes off any letter that could be a unit, also the t of `\\sin t`; readings.py knows better
_LETTER_AS_UNIT = re.compile(r"\W*(?:\d[\d.,/]*|\\frac\{\d+\}\{\d+\}|\d*\\sqrt\{\d+\}|\d*\\pi) [A-Za-z]\W*")


@lru_cache(maxsize=2)
def _latex_settings(units: bool) -> Any:
    import math_verify
    from latex2sympy2_extended.latex2sympy2 import NormalizationConfig

    normal = NormalizationConfig(
        basic_latex=True, units=units, malformed_operators=True, nits=True, boxed="all", equations=False
    )
    return math_verify.LatexExtractionConfig(normalization_config=normal)


def readable(answer: str) -> str:
    """An answer as Math-Verify reads all of it: boxed, unless it has mathematics marked in words, or is words."""
    answer = to_latex(answer)
    if _MATH_SPAN.search(answer):
        return answer
    if any(word.lower() not in _FUNCTIONS for word in _WORD.findall(_TEXT.sub("", answer))):
        return answer
    return f"\\boxed{{{answer}}}"


def _undefined(value: Any) -> bool:
    """Whether a parsed answer holds a division by zero or the like."""
    import sympy

    return isinstance(value, sympy.Basic) and value.has(sympy.nan, sympy.zoo)


def _agree(gold: Any, answer: Any) -> bool:
    """Whether two closed numbers agree: in all of 1,000 digits, or to 4 where one is a decimal. True of all else."""
    import sympy

    if not all(isinstance(value, sympy.Expr) and value.is_number for value in (gold, answer)):
        return True
    try:
        gap = sympy.N(gold.doit() - answer.doit(), 30, maxn=1000)
        if gold.has(sympy.Float) or answer.has(sympy.Float):
            return bool(abs(gap) <= abs(sympy.N(gold.doit(), 30)) * sympy.Float("1e-4"))
    except TypeError:  # no number comes out, such as of an integral without a value
        return True
    if not gap.is_number or gap.has(sympy.Integral, sympy.Sum, sympy.nan):
        return True
    # what evalf cannot tell from zero has hardly any precision left
    return gap == 0 or all(part == 0 or part._prec < 10 for part in gap.atoms(sympy.Float))
