"""What most verifiers begin with: the final answer of a completion, or the verdict where there is none to compare."""

from rlvr_cli.records import Record
from rlvr_cli.verifiers.extraction import Found, find, nothing
from rlvr_cli.verifiers.judgement import Judgement, wrong

SHOWN = 200  # characters of an answer in a reason


def final_answer(record: Record) -> tuple[str, Found] | Judgement:
    """The text to compare: the stated answer, else all that may be read. A judgement when there is neither.

    A hedge between boxes is wrong; a completion without an answer is `no_answer` or `truncated`.
    """
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    text = found.text if found.text is not None else found.rest
    if text is None:
        return nothing(record, found.reason)
    return text.strip(), found


def shown(text: str) -> str:
    """A text as a reason quotes it: short."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
