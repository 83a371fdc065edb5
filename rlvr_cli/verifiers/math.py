r"""Mathematical equality: a fast path where the verdict is certain (fast_math.py), else Math-Verify (math_engine.py).

The final answer is what extraction.py finds. Hedges, lists of candidates and values beside the answer are wrong. Where
Math-Verify calls two closed numbers equal, they are evaluated as well; if they differ the answer is wrong, and
`verifier_detail` has `disagreement`. A failure of the engine is verdict `error`, never a silent "not equal".

Conventions: a list or set has no order, a tuple has one; a unit counts when both answers have one; `N%` is also `N`;
a decimal is compared to six places and four significant digits. Columns of a record that change this: `precision`, how
many decimal places are compared (0 to 15), and `strict`, false when the names of variables do not matter.

`judge` keeps no time: it runs in a worker process of the pool, which kills it.
"""

import re
from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers import math_engine
from rlvr_cli.verifiers.extraction import Found, find, hedges, nothing
from rlvr_cli.verifiers.fast_math import NOT_ONE, OR, RIGHT, Decision, decide
from rlvr_cli.verifiers.judgement import Judgement, correct, error, wrong
from rlvr_cli.verifiers.numbers import numbers, plain
from rlvr_cli.verifiers.readings import reading

LONGEST = 2000  # characters of an answer that the symbolic engine is given
DEEPEST = 100  # levels of brackets, likewise
SHOWN = 2000  # characters of an answer that is kept as `extracted`


def check(record: Record) -> None:
    """There is an answer, and the columns that change how it is compared fit. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="math compares with it")
    if not record["answer"].strip():
        raise RecordError(f"{record.where}: answer is empty; math compares with it")
    precision = record.get("precision", math_engine.ROUNDING)
    if isinstance(precision, bool) or not isinstance(precision, int) or not 0 <= precision <= 15:
        raise RecordError(f"{record.where}: precision is {precision!r}, expected decimal places from 0 to 15")
    if not isinstance(record.get("strict", True), bool):
        raise RecordError(f"{record.where}: strict is {record['strict']!r}, expected true or false")


def quick(record: Record) -> Judgement | None:
    """The verdict where it is certain without a symbolic engine."""
    found = find(record)
    if found.text is None and found.rest is not None:
        return None
    answer = _stated(found)
    if answer is None:
        return nothing(record, found.reason)
    if found.hedged:
        return wrong(answer[:SHOWN], found.reason, **found.detail)
    decision = _decide(record, _gold(record["answer"]), answer)
    return None if decision is None else _judgement(decision, answer, found)


def judge(record: Record) -> Judgement:
    """Compare the final answer with the record's answer as mathematics."""
    found = find(record)
    gold = _gold(record["answer"])
    answer = _stated(found)
    if answer is None:
        return nothing(record, found.reason)
    if found.hedged:
        return wrong(answer[:SHOWN], found.reason, **found.detail)
    decision = _decide(record, gold, answer)
    if decision is not None and (decision.right or found.text is not None):
        return _judgement(decision, answer, found)
    if found.text is None and (candidates := _candidates(answer)) is not None:
        decision = _decide(record, gold, candidates) or (None if reading(gold).several else NOT_ONE)
        if decision is not None:
            return _judgement(decision, candidates, found)
    return by_engine(record, found, gold, answer)


def by_engine(record: Record, found: Found, gold: str, answer: str) -> Judgement:
    """The verdict of the symbolic engine, and of the check of it."""
    if found.text is not None and hedges(answer) and not (reading(gold).several or reading(answer).union):
        return _judgement(OR, answer, found)
    searched = found.text is None and not _WHOLE_SPAN.match(answer)
    if not searched:
        answer = _for_engine(gold, answer)
    if len(answer) > LONGEST:
        reason = f"the answer has {len(answer)} characters, over {LONGEST}"
        return wrong(answer[:SHOWN], reason, **found.detail)
    if _depth(answer) > DEEPEST:
        return wrong(answer, f"brackets are nested deeper than {DEEPEST}", **found.detail)
    rounding, strict = record.get("precision", math_engine.ROUNDING), record.get("strict", True)
    try:
        reason = math_engine.equal(_for_engine(answer, gold), answer, searched, rounding, strict)
    except math_engine.NoMathematicsError:
        return nothing(record, "no final answer was found")
    except MemoryError:  # the pool's business
        raise
    except Exception as bad:
        return error(f"{type(bad).__name__}: {bad}"[:300], answer, **found.detail)
    if reason == math_engine.DISAGREE:
        return wrong(answer, reason, disagreement=True, **found.detail)
    return wrong(answer, reason, **found.detail) if reason else correct(answer, **found.detail)


def _decide(record: Record, gold: str, answer: str) -> Decision | None:
    """The verdict of the fast path."""
    if "strict" in record:
        return RIGHT if gold == answer else None
    return decide(gold, answer, rounded="precision" in record)


def _judgement(decision: Decision, answer: str, found: Found) -> Judgement:
    if decision.right:
        return Judgement("correct", 1.0, answer[:SHOWN], found.detail)
    return wrong(answer[:SHOWN], decision.reason, **found.detail)


@lru_cache(maxsize=4096)
def _gold(answer: str) -> str:
    """The gold answer, out of its box when it is a whole solution."""
    return (find({"completion": answer}).text or answer).strip() if "\\boxed" in answer else answer.strip()


def _for_engine(other: str, answer: str) -> str:
    """What the engine is given of an answer: its value without unit, condition and wrapping, unless it is prose."""
    it = reading(answer)
    if it.prose or not it.value or "$" in it.text:
        return answer
    return f"{it.name}={it.value}" if it.name and "=" in it.text and "=" in reading(other).text else it.value


_WHOLE_SPAN = re.compile(r"\s*\$[^$]*\$\.?\s*\Z")
_WORD = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2,}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_LEAD = re.compile(r"^.*\b(?:is|are|equals)\b[\s:]*", re.DOTALL)  # `the area of $ABCD$ is 6`
_FIRST_SPAN = re.compile(r"(\$[^$\n]+\$|\\\([^\n]*?\\\))(?!\s*(?:,|;|and\b|or\b|\$|\\\(|=))")


def _stated(found: Found) -> str | None:
    """What a completion offers to compare: its answer, out of the sentence around it, or the end of its text."""
    if found.text is None:
        return found.rest.strip()[-LONGEST:] if found.rest is not None else None
    if found.how == "phrase" and _WORD.search(found.text):
        text = _LEAD.sub("", found.text) or found.text
        if span := _FIRST_SPAN.match(text):
            return span[1]
        if "\\" not in text and text.count("$") < 2 and _WORD.search(text) and not hedges(text):
            return _number_of(text)
        return text
    return found.text


def _number_of(sentence: str) -> str:
    """The number that a sentence states: the last of an equation, else the first; all of it when it lists several."""
    there = numbers(sentence)
    if len(there) < 2:  # one with words in another script than ours around it is not taken apart any further
        return sentence if not there or _LATIN.search(sentence) else there[0].text
    if "=" in sentence:
        return there[-1].text
    return sentence if _LISTED.fullmatch(plain(sentence), there[0].end, there[1].start) else there[0].text


_LATIN = re.compile(r"[A-Za-z%]")
_LISTED = re.compile(r"\s*(?:[,;&]|\band\b)(?:\s*and\b)?\s*")
_CANDIDATES = re.compile(
    r"(?:^|[\s:])((?:-?\d+(?:\.\d+)?(?:\s*,\s*|\s+or\s+|\s*,\s*or\s+)){2,}-?\d+(?:\.\d+)?)\.?\s*\Z"
)
_EITHER = re.compile(r"(?:^|[\s:])(-?\d+(?:\.\d+)?\s+or\s+-?\d+(?:\.\d+)?)\.?\s*\Z")


def _candidates(text: str) -> str | None:
    """The list of numbers with which a text ends that states no answer."""
    tail = text[-200:]
    match = _CANDIDATES.search(tail) or _EITHER.search(tail)
    if match is None or re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", match[1]):
        return None
    return match[1]


def _depth(text: str) -> int:
    """How deep brackets are nested."""
    depth = deepest = 0
    for letter in text:
        depth += (letter in "{([") - (letter in "})]")
        deepest = max(deepest, depth)
    return deepest
