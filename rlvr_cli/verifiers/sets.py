"""A set of items: the order does not matter, nor how often one is named.

The answer is a JSON list, or items with commas between them; brackets, braces, `and` and all else as for `sequence`.
Sets are sets: `{1, 1, 2}` is `{1, 2}`, in the answer and in the completion. Missing and additional items are wrong.
Lists within the set are ordered: `{(1, 2)}` is not `{(2, 1)}`.
"""

from rlvr_cli.records import Record
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong
from rlvr_cli.verifiers.sequence import answer_keys, check, gold_keys, said

__all__ = ["check", "judge", "quick"]


def judge(record: Record) -> Judgement:
    """Compare as sets."""
    read = answer_keys(record)
    if isinstance(read, Judgement):
        return read
    text, detail, answer = read
    gold = gold_keys(record["answer"])
    for one, other, what in ((gold, answer, "missing"), (answer, gold, "not expected")):
        if left := set(one) - set(other):
            return wrong(text, f"{said(next(key for key in one if key in left))} is {what}", **detail)
    return correct(text, **detail)


quick = judge
