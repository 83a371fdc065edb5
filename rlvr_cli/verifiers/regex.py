"""The answer is a regular expression (Python's `re`) that has to match the whole extracted text.

What is matched: the box, `<answer>` tag, `####` line or stated answer when there is one, else all of the completion
after its thinking, without white space around it. `.` does not match a line end unless the pattern says `(?s)`.

The pattern comes from the owner of the data, the text from the policy, which may look for a text that makes the
pattern backtrack without end: a match that takes longer than SECONDS is verdict `timeout`.
"""

import re
from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.deadline import DeadlineError, deadline
from rlvr_cli.verifiers.extraction import find, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, timeout, wrong

SECONDS = 1.0


def check(record: Record) -> None:
    """The answer is a pattern that compiles. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="regex needs a pattern")
    try:
        _pattern(record["answer"])
    except (re.error, RecursionError, OverflowError) as bad:
        raise RecordError(f"{record.where}: answer is no regular expression ({bad}); see Python's re") from bad


def judge(record: Record) -> Judgement:
    """Match the whole final answer."""
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    text = found.text if found.text is not None else found.rest
    if text is None:
        return nothing(record, found.reason)
    text = text.strip()
    try:
        with deadline(SECONDS):
            fits = _pattern(record["answer"]).fullmatch(text) is not None
    except DeadlineError:
        return timeout(text, SECONDS, **found.detail)
    return correct(text, **found.detail) if fits else wrong(text, "the pattern does not match", **found.detail)


@lru_cache(maxsize=1024)
def _pattern(answer: str) -> re.Pattern[str]:
    return re.compile(answer)
