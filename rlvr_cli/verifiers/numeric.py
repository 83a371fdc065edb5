"""The last number of the final answer, within a tolerance.

Exact when the answer is an integer; otherwise within 1e-6 of the answer relatively, and when the answer is 0, within
1e-6 absolutely (so small answers do not all become equal). A record's own `rel_tol` and `abs_tol` columns replace
these. Decimals, exponents (`3e6`, `3 \\times 10^6`) and fractions are read; infinities and NaN are no numbers.
"""

from fractions import Fraction
from typing import Any

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import find, hedges, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong
from rlvr_cli.verifiers.numbers import Number, numbers, only_number

TOLERANCE = 1e-6


def check(record: Record) -> None:
    """The answer is a number, and so are the tolerances. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="numeric compares with a number")
    if only_number(record["answer"]) is None:
        raise RecordError(f"{record.where}: answer is {record['answer'][:60]!r}, expected a finite number")
    for name in ("rel_tol", "abs_tol"):
        value = record.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise RecordError(f"{record.where}: {name} is {value!r}, expected a number of at least 0")


def judge(record: Record) -> Judgement:
    """Compare the last number of the final answer with the record's answer."""
    gold = only_number(record["answer"])
    assert gold is not None, "check refuses such an answer"
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    text = found.text if found.text is not None else found.rest
    if text is None:
        return nothing(record, found.reason)
    if found.text is not None and hedges(text):
        return wrong(found.text, "several answers joined by or", **found.detail)
    there = numbers(text)
    if not there:
        return nothing(record, "there is no number in the answer")
    number = there[-1]
    if abs(number.value - gold.value) <= _tolerance(gold, record):
        return correct(number.text, **found.detail)
    return wrong(number.text, f"expected {gold.text}", **found.detail)


def _tolerance(gold: Number, record: dict[str, Any]) -> Fraction:
    """The largest gap that still counts as equal."""
    given = [name for name in ("rel_tol", "abs_tol") if name in record]
    if given:
        return max(Fraction(record.get("rel_tol", 0)) * abs(gold.value), Fraction(record.get("abs_tol", 0)))
    if gold.whole:
        return Fraction(0)
    return Fraction(TOLERANCE) * (abs(gold.value) if gold.value else 1)
