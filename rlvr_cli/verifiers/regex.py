"""The answer is a regular expression (Python's `re`) that has to match the whole extracted text.

What is matched: the box, `<answer>` tag, `####` line or stated answer when there is one, else all of the completion
after its thinking, without white space around it. `.` does not match a line end unless the pattern says `(?s)`.

The pattern comes from the owner of the data, the text from the policy, which may look for a text that makes the
pattern backtrack without end: so it is always matched in a worker, which the pool ends when its time is up.
"""

import re
import warnings
from functools import lru_cache

from rlvr_cli.errors import RecordError, first_line
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.final import final_answer
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong


def check(record: Record) -> None:
    """The answer is a pattern that compiles. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="regex needs a pattern")
    try:
        _pattern(record["answer"])
    except (re.error, RecursionError, OverflowError, ValueError) as bad:
        raise RecordError(
            f"{record.where}: answer is no regular expression ({first_line(bad)}); see Python's re"
        ) from bad


def judge(record: Record) -> Judgement:
    """Match the whole final answer."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    if _pattern(record["answer"]).fullmatch(text):
        return correct(text, **found.detail)
    return wrong(text, "the pattern does not match", **found.detail)


@lru_cache(maxsize=1024)
def _pattern(answer: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of syntax that may change its meaning: it has not
        return re.compile(answer)
