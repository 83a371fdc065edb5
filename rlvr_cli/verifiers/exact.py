"""The same text, apart from white space around it.

What is compared: the box, `<answer>` tag, `####` line or stated answer when there is one, else all of the completion
after its thinking. Case, punctuation and inner white space count.
"""

from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.final import final_answer, shown
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong


def check(record: Record) -> None:
    """There is an answer. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="exact compares with it")


def judge(record: Record) -> Judgement:
    """Compare texts."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    gold = record["answer"].strip()
    return correct(text, **found.detail) if text == gold else wrong(text, f"expected {shown(gold)}", **found.detail)


quick = judge
