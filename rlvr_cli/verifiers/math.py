r"""Mathematical equality by Math-Verify (Hugging Face, 0.9): final answer and gold answer are parsed and compared.

Around it, because of what it does when left alone (measured, not guessed):
- a bare LaTeX gold answer is boxed first, since it is not read otherwise; gold answers are parsed once each;
- only the final answer is given to it (verifiers/extraction.py), in a box as well, so that it reads all of it: left to
  search, it takes the last number of a list, of an unparsed formula or of a mixed number;
- Unicode and spacing that it does not know are rewritten, plain scientific notation too (it drops such exponents);
- one deadline for all of its work, by a repeated alarm, instead of its own two (which cancel the caller's timer);
- its exceptions are verdict `error` and show up as such, instead of a silent "not equal";
- where it calls two closed numbers equal, they must agree to 20 digits as well (it calls 1/2004! and 1/2006! equal).

No text is evaluated: a plain expression reaches sympy's parser only when it is made of digits and operators alone.
"""

import logging
import re
from functools import lru_cache
from typing import Any

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.deadline import DeadlineError, deadline
from rlvr_cli.verifiers.extraction import Found, find, hedges, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, error, timeout, wrong
from rlvr_cli.verifiers.latex import to_latex, words

SECONDS = 5.0
LONGEST = 2000  # characters of an answer that the symbolic engine is given


def check(record: Record) -> None:
    """There is an answer. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="math compares with it")
    if not record["answer"].strip():
        raise RecordError(f"{record.where}: answer is empty; math compares with it")


def judge(record: Record) -> Judgement:
    """Compare the final answer with the record's answer as mathematics. In the main thread only."""
    found = find(record)
    gold = _final(record["answer"])
    answer = _stated(found)
    if answer is None:
        return nothing(record, found.reason)
    if found.hedged or (found.text is not None and hedges(answer) and not hedges(gold)):
        return wrong(answer, found.reason or "several answers joined by or", **found.detail)
    if words(answer) == words(gold):
        return correct(answer, **found.detail)
    if len(answer) > LONGEST:
        return wrong(answer[:LONGEST], f"the answer has {len(answer)} characters, over {LONGEST}", **found.detail)
    try:
        with deadline(SECONDS):
            equal, doubt = _equal(gold, answer, searched=found.text is None and not _WHOLE_SPAN.match(answer))
    except DeadlineError:
        return timeout(answer, SECONDS, **found.detail)
    except Exception as bad:
        return error(f"{type(bad).__name__}: {bad}"[:300], answer, **found.detail)
    if equal:
        return correct(answer, **found.detail)
    return wrong(answer, doubt or "not equal to the answer", **found.detail)


_MATH_SPAN = re.compile(r"\$|\\\(|\\\[")
_WHOLE_SPAN = re.compile(r"\s*\$[^$]*\$\.?\s*\Z")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_TEXT = re.compile(r"\\(?:text|textbf|mbox|mathrm|operatorname|begin|end)\s*\{[^{}]*\}")
_LEAD = re.compile(r"^.*\b(?:is|are|equals)\b[\s:]*", re.DOTALL)  # `the area of $ABCD$ is 6`
_FUNCTIONS = {"sqrt", "sin", "cos", "tan", "log", "exp", "pi"}


def _final(gold: str) -> str:
    """The gold answer, out of its box when it is a whole solution."""
    return (find({"completion": gold}).text or gold).strip() if "\\boxed" in gold else gold.strip()


def _stated(found: Found) -> str | None:
    """What a completion offers to compare: its answer, out of the sentence around it, or the end of its text."""
    if found.how == "phrase" and found.text is not None and _WORD.search(found.text):
        return _LEAD.sub("", found.text) or found.text
    if found.text is not None:
        return found.text
    return found.rest.strip()[-LONGEST:] if found.rest is not None else None


def _equal(gold: str, answer: str, searched: bool) -> tuple[bool, str]:
    """Whether two answers are equal, and when they are not after all, why."""
    import math_verify

    golds = list(_parsed_gold(gold))
    if not golds:
        raise ValueError("the record's own answer cannot be read as mathematics; verifier exact compares texts")
    answers = _parse(answer, searched)
    if any(_undefined(value) for value in answers):
        return False, "the answer is not defined"
    if not math_verify.verify(golds, answers, allow_set_relation_comp=True, timeout_seconds=None, raise_on_error=True):
        return False, ""
    if golds and answers and "%" not in gold + answer and not _agree(golds[0], answers[0]):
        return False, "Math-Verify calls it equal, but the numbers differ"
    return True, ""


@lru_cache(maxsize=4096)
def _parsed_gold(gold: str) -> tuple[Any, ...]:
    return tuple(_parse(gold))


def _parse(answer: str, searched: bool = False) -> list[Any]:
    """The values that Math-Verify reads in an answer: at most one expression, and its text.

    `searched`: the answer lies somewhere in the text, as LaTeX or as a bare number, whichever is last. Otherwise the
    text is the answer, and a bare number is looked for only where there is no LaTeX at all: never inside a formula
    that could not be parsed.
    """
    import math_verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns that its own time limits are off: ours is on
    text = _readable(answer)
    latex, bare = math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig()
    for kinds in [[latex, bare]] if searched else [[latex], [bare]]:
        values = list(math_verify.parse(text, kinds, parsing_timeout=None, raise_on_error=True))
        if values:
            return values
    return []


def _readable(answer: str) -> str:
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
    """Whether two closed numbers agree, relatively: to 20 digits, or 4 where one is a decimal. True of all else."""
    import sympy

    if not all(isinstance(value, sympy.Expr) and value.is_number for value in (gold, answer)):
        return True
    decimal = gold.has(sympy.Float) or answer.has(sympy.Float)
    try:
        gap = abs(sympy.N(gold.doit() - answer.doit(), 30, maxn=1000))
        size = abs(sympy.N(gold.doit(), 30))
        return bool(gap <= size * sympy.Float("1e-4" if decimal else "1e-20"))
    except TypeError:  # no number comes out, such as of an integral without a value
        return True
