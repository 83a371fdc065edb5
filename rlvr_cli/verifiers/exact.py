"""The same text, apart from white space around it.

What is compared: the box, `<answer>` tag, `####` line or stated answer when there is one, else all of the completion
after its thinking. Case, punctuation and inner white space count.
"""

from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import find, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong


def check(record: Record) -> None:
    """There is an answer. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="exact compares with it")


def judge(record: Record) -> Judgement:
    """Compare texts."""
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    whole = None if found.rest is None else found.rest.strip()
    text = found.text if found.text is not None else whole
    if text is None:
        return nothing(record, found.reason)
    if text == record["answer"].strip():
        return correct(text, **found.detail)
    return wrong(text, f"expected {record['answer'].strip()!r}", **found.detail)
