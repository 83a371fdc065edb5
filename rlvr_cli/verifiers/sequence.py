"""A list of items in order.

The answer is a JSON list, or items with commas (or semicolons, arrows, bullets on lines) between them; so is the final
answer of the completion, in brackets or not, with or without an `and` before the last item. Numbers are compared by
their exact value, all else as the verifier `text` compares it, lists within lists as sequences (items.py).
Missing, additional and swapped items are wrong.
"""

from functools import lru_cache
from typing import Any

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import hedges
from rlvr_cli.verifiers.final import final_answer, shown
from rlvr_cli.verifiers.items import Key, keys
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong


def check(record: Record) -> None:
    """The answer is a list. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="sequence and set compare with a list")
    try:
        found = gold_keys(record["answer"])
    except ValueError as bad:
        raise RecordError(f"{record.where}: answer is no list ({bad})") from bad
    if not found and not any(sign in record["answer"] for sign in "[{(∅") and "empty" not in record["answer"]:
        raise RecordError(f"{record.where}: answer is {shown(record['answer'])}, expected a list such as 1, 2, 3")


def judge(record: Record) -> Judgement:
    """Compare item by item."""
    read = answer_keys(record)
    if isinstance(read, Judgement):
        return read
    text, detail, answer = read
    gold = gold_keys(record["answer"])
    if answer == gold:
        return correct(text, **detail)
    if len(answer) != len(gold):
        return wrong(text, f"expected {len(gold)} items, got {len(answer)}", **detail)
    at = next(index for index, (one, other) in enumerate(zip(gold, answer, strict=True)) if one != other)
    return wrong(text, f"item {at + 1} is {said(answer[at])}, expected {said(gold[at])}", **detail)


quick = judge


def answer_keys(record: Record) -> tuple[str, dict[str, Any], tuple[Key, ...]] | Judgement:
    """The final answer of a completion, the detail of its extraction, and the keys of its items."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    if hedges(text) and not hedges(record["answer"]):
        return wrong(text, "several answers joined by or", **found.detail)
    try:
        return text, found.detail, keys(text)
    except ValueError as bad:
        return wrong(text[:200], str(bad), **found.detail)


@lru_cache(maxsize=1024)
def gold_keys(answer: str) -> tuple[Key, ...]:
    """The keys of the record's own list. Raises ValueError."""
    return keys(answer)


def said(key: Key) -> str:
    """A key as a reason names it."""
    if isinstance(key, tuple):
        return shown("[" + ", ".join(map(str, key)) + "]")
    return shown(key) if isinstance(key, str) else str(key)[:60]
