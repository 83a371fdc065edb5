"""The number after `####`, as in GSM8K: exact, whatever its thousands separators, currency or trailing period.

The answer is the number alone or the whole solution with its `#### N`. A completion may state its number in a box,
after `####` or in a sentence; else its last number counts. A number may have a unit behind it (`18 dollars`). Of a
statement with several numbers, the last counts in an equation (`6 * 7 = 42`), else the first (`42 of the 50`).
"""

import re
from fractions import Fraction
from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import find, hedges, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong
from rlvr_cli.verifiers.numbers import Number, numbers, only_number
from rlvr_cli.verifiers.readings import plain_number

TAIL = 4000  # characters that are looked at
_CALCULATOR = re.compile(r"<<[^<>\n]*>>")  # GSM8K's own annotations: `6*7=<<6*7=42>>42`
_SEVERAL = re.compile(r"\s*(?:,|;|and|&|\\quad)\s*\Z")


def check(record: Record) -> None:
    """The answer is a number. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="gsm8k compares with a number")
    if _gold(record["answer"]) is None:
        raise RecordError(f"{record.where}: answer is {record['answer'][-60:]!r}, expected a number or `#### number`")


def judge(record: Record) -> Judgement:
    """Compare the completion's final number with the answer's."""
    gold = _gold(record["answer"])
    assert gold is not None, "check refuses such an answer"
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    text = found.text if found.text is not None else found.rest
    if text is None:
        return nothing(record, found.reason)
    if found.text is not None and (value := plain_number(text)) is not None:
        return correct(text, **found.detail) if value == gold else wrong(text, f"expected {gold}", **found.detail)
    if found.text is None:
        text = text if len(text) <= TAIL else text[-TAIL:].partition(" ")[2]  # not half a number
    elif len(text) > TAIL:
        return wrong(text[:TAIL], f"the answer has {len(text)} characters", **found.detail)
    text = _CALCULATOR.sub("", text)
    there = numbers(text)
    if not there:
        return nothing(record, "there is no number in the answer")
    if found.text is None:
        number = there[-1]
    elif hedges(text) or _listed(text, there):
        return wrong(found.text, "several numbers where one is asked for", **found.detail)
    else:
        number = there[-1] if "=" in text else there[0]
    if number.value == gold:
        return correct(number.text, **found.detail)
    return wrong(number.text, f"expected {gold}", **found.detail)


quick = judge


@lru_cache(maxsize=4096)
def _gold(answer: str) -> Fraction | None:
    number = only_number(answer.rpartition("####")[2])
    return None if number is None else number.value


def _listed(text: str, there: list[Number]) -> bool:
    """Whether the first two numbers are items of a list, and differ."""
    return (
        len(there) > 1 and there[0].value != there[1].value and bool(_SEVERAL.match(text, there[0].end, there[1].start))
    )
