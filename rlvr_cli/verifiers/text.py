"""The same words: case, punctuation around words, articles and white space aside.

What is compared: the box, `<answer>` tag, `####` line or stated answer when there is one, else all of the completion
after its thinking; a completion that is the answer as a whole is right too (`The answer is 42` for `answer is 42`).

Both sides are made alike, and then have to be the same:
- Unicode NFKC, quotes and dashes of one kind; white space runs are one space; case folded;
- out of LaTeX's `\\text{...}` and dollars, out of Markdown's stars and backticks;
- punctuation at the ends of words goes (`City!`, `"Paris"`, `(a)`), so do the points of `U.S.A.` and the commas of
  `1,000`; what changes a value stays: signs, decimal points, `%`, `$`, `<`, the brackets of numbers (intervals), `C++`;
- `a`, `an` and `the` before another word, apostrophes and hyphens inside words go, on both sides or on neither.

The answer is one text, or a JSON list of texts of which any is right: `["NYC", "New York City"]`. (For an answer that
is itself such a list there are `sequence`, `set`, `json` and `exact`.)
"""

import json
import re
import unicodedata
from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import visible
from rlvr_cli.verifiers.final import final_answer, shown
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong

SPARE = 1000  # characters that a right answer may have beyond twice the gold answer's

_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_ALIKE = _INVISIBLE | str.maketrans(
    dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‐‑‒–—―−", "-")
)
_WORDS = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_DISPLAY = re.compile(r"\\[()\[\]]|\$(?!\d)")  # LaTeX's marks of mathematics; `$5` is money
_ENDS = "\"'.,;:!?*_`~¿¡…。、，；：！？「」『』"
_BRACKETS = "()[]{}"
_POINTED = re.compile(r"(?<=\b[^\W\d])\.(?=[^\W\d]\b)")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_ARTICLES = {"a", "an", "the"}


def check(record: Record) -> None:
    """The answer is a text, or a list of texts, with something in it. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="text compares with it")
    golds = _golds(record["answer"])
    if not golds or not all(normal(gold) for gold in golds):
        raise RecordError(f"{record.where}: answer is {shown(record['answer'])}, expected a text with a word in it")


def judge(record: Record) -> Judgement:
    """Compare texts made alike."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    golds = _golds(record["answer"])
    if len(" ".join(text.split())) > SPARE + 2 * max(map(len, golds)):
        return wrong(text[:SPARE], f"the answer has {len(text)} characters, many more than expected", **found.detail)
    if any(same(gold, text) for gold in golds):
        return correct(text, **found.detail)
    if found.how == "phrase":  # the gold answer may have the words that lead to it
        whole = (visible(record["completion"], record.get("prompt") or "") or "").strip()
        if len(whole) < SPARE and any(same(gold, whole) for gold in golds):
            return correct(whole, **found.detail)
    return wrong(text, f"expected {' or '.join(map(shown, golds[:3]))}", **found.detail)


quick = judge


def same(one: str, other: str) -> bool:
    """Whether two texts have the same words."""
    mine, yours = normal(one), normal(other)
    if mine == yours or _bare(mine) == _bare(yours):
        return True
    return _bare(_HYPHEN.sub(" ", mine)) == _bare(_HYPHEN.sub(" ", yours))


def normal(text: str) -> str:
    """The text as it is compared, but for its articles."""
    text = unicodedata.normalize("NFKC", text).translate(_ALIKE)
    text = _DISPLAY.sub(" ", _WORDS.sub(r"\1", text))
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    return " ".join(word for word in map(_word, text.casefold().split()) if word)


def bare(text: str) -> str:
    """The text as it is compared, without its articles: a key that texts with the same words share."""
    return _bare(normal(text))


def _word(word: str) -> str:
    """A word without the punctuation around it. A point or sign that makes it a number stays."""
    ends = _ENDS if any(map(str.isdigit, word)) else _ENDS + _BRACKETS  # `[1` and `(1` are two kinds of interval
    start = word.lstrip(ends)
    if start[:1].isdigit() and word[: len(word) - len(start)].endswith("."):
        start = "." + start
    return _POINTED.sub("", start.rstrip(ends))


def _bare(text: str) -> str:
    """A normal text without articles, apostrophes, and hyphens between letters."""
    words = _HYPHEN.sub("", text).replace("'", "").split()
    last = len(words) - 1
    return " ".join(word for at, word in enumerate(words) if word not in _ARTICLES or at == last)


@lru_cache(maxsize=4096)
def _golds(answer: str) -> tuple[str, ...]:
    """The texts of which any is right."""
    if answer.lstrip().startswith("["):
        try:
            listed = json.loads(answer)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and listed and all(isinstance(item, str) for item in listed):
            return tuple(listed)
    return (answer,)
