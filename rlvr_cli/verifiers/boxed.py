r"""The last `\boxed{...}`, compared as text. No mathematics is read: `0.5` is not `1/2`.

What does not matter: spacing (but between digits), `\left` and `\right`, `\dfrac` for `\frac`, `\text{...}` around
words and their case, dollars, braces or parentheses doubled around all of it, a final period, LaTeX separators inside
numbers (`1{,}234` is `1,234`), Unicode digits and minus signs. The record's answer may be in a box of its own.
"""

from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import find_box, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong
from rlvr_cli.verifiers.latex import canonical
from rlvr_cli.verifiers.numbers import ascii_digits

SHOWN = 2000  # characters of an answer that is kept as `extracted`


def check(record: Record) -> None:
    """There is an answer. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="boxed compares with it")
    if not _gold(record["answer"]):
        raise RecordError(f"{record.where}: answer is empty; boxed compares with it")


def judge(record: Record) -> Judgement:
    """Compare the last box with the record's answer."""
    found = find_box(record)
    if found.text is None:
        return nothing(record, found.reason)
    text = found.text[:SHOWN]
    if found.hedged:
        return wrong(text, found.reason, **found.detail)
    if _plain(found.text) == _gold(record["answer"]):
        return correct(text, **found.detail)
    return wrong(text, f"expected {record['answer'].strip()[:60]!r}", **found.detail)


quick = judge


@lru_cache(maxsize=4096)
def _gold(answer: str) -> str:
    """The record's answer, out of its box when it has one."""
    return _plain(find_box({"completion": answer}).text or answer)


def _plain(text: str) -> str:
    text = ascii_digits(text).replace("{,}", ",").replace("\\,", " ").replace(",\\!", ",")
    return canonical(text)
