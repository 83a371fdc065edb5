"""One letter of a multiple choice: `B`, `(B)`, `B. Paris`, `the answer is (B)`.

The answer is a letter, alone, in parentheses or before its option's text. A completion states its letter in a box,
tag or sentence; else a letter that begins the completion counts (`B. Because`), else the last letter that stands alone.
Letters are capitals: `a` is an article, and so is a lone `A` or `I` before a word in small letters. With a `choices`
column (a list of the options' texts), an option's own text stands for its letter.
"""

import re
from typing import Any

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import find, nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong

_WRAPPING = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textrm|mbox)\s*\{([^{}]*)\}|\$|\*\*|\\[()\[\]]")
_LABEL = re.compile(r"\s*:?\s*(?:option\s+|choice\s+)?[(\[]?([A-Z])[)\]]?(?=$|[\s.,:;)。，：、])", re.IGNORECASE)
_LETTER = re.compile(r"(?<![A-Za-z0-9'\\])[(\[]?([A-Z])(?![A-Za-z0-9'])[)\]]?")
_LIST = re.compile(r"\s*[)\]]?\s*(?:,|/|&|\band\b|\bor\b)+\s*(?:or\s+|and\s+)?[(\[]?[A-Z](?![A-Za-z0-9'])")


def check(record: Record) -> None:
    """The answer names a letter. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="choice compares with a letter")
    if _gold(record["answer"]) is None:
        raise RecordError(f"{record.where}: answer is {record['answer'][:60]!r}, expected a letter such as B or (B)")


def judge(record: Record) -> Judgement:
    """Compare the completion's letter with the answer's."""
    gold = _gold(record["answer"])
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    text = found.text if found.text is not None else found.rest
    if text is None:
        return nothing(record, found.reason)
    text = " ".join(_WRAPPING.sub(lambda match: match[1] or "", text).split())
    by_text = _option(text, record)
    match = None if by_text else _letter(text, stated=found.text is not None)
    if match and found.text is not None and _LIST.match(text, match.end(1)):
        return wrong(found.text, "several letters where one is asked for", **found.detail)
    letter = by_text or (match[1] if match else None)
    if letter is None:
        return nothing(record, "there is no letter in the answer")
    return correct(letter, **found.detail) if letter == gold else wrong(letter, f"expected {gold}", **found.detail)


def _gold(answer: str) -> str | None:
    """The letter of an answer."""
    match = _LABEL.match(_WRAPPING.sub(lambda found: found[1] or "", answer))
    if match is None:
        named = list(re.finditer(r"\(([A-Z])\)", answer))
        return named[-1][1] if named else None
    return match[1].upper()


def _letter(text: str, stated: bool) -> re.Match[str] | None:
    """Where a text names its letter: at its beginning, in its first clause when it is a stated answer, or at last."""
    label = _LABEL.match(text)
    if label and label[1].isupper() and not _is_word(text, label):
        return label
    letters = [match for match in _LETTER.finditer(text) if not _is_word(text, match)]
    if not letters:
        return None
    return letters[0] if stated else letters[-1]


def _is_word(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is the English word: `A` or `I` followed by a word in small letters."""
    bare = match[0].strip() in ("A", "I")
    return bare and re.match(r"\s+[a-z]", text[match.end() : match.end() + 20]) is not None


def _option(text: str, record: dict[str, Any]) -> str | None:
    """The letter whose option's text this is."""
    options = record.get("choices")
    if not isinstance(options, list):
        return None
    wanted = text.strip().rstrip(".").casefold()
    same = [index for index, option in enumerate(options) if str(option).strip().rstrip(".").casefold() == wanted]
    return chr(ord("A") + same[0]) if len(same) == 1 and same[0] < 26 else None
