"""Where a completion is cut: contiguous segments that cover its tokens.

Only token boundaries count. For sentences and lines the tokens are turned to text, with the tokenizer of the policy
that sampled them, and a segment ends behind the token that completes the sentence or the line end. No text is ever
turned to tokens.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from rlvr_cli.errors import RecordError, UsageError, UserError, first_line
from rlvr_cli.records import Record, check_columns

Decode = Callable[[list[int]], str]

# A run of . ! ? and closing marks (Markdown's and TeX's too) before white space or the end, so that 3.14 is no end; the
# CJK marks need no white space. The possessive forms and the look-behind keep long runs of dots linear.
_CLOSING = "[\"'”’»)\\]}*_`$」』）】]"
_SENTENCE = re.compile(rf"(?<![.!?…])[.!?…]++{_CLOSING}*+(?=\s|\Z)|[。！？｡]++{_CLOSING}*+")
_LINE = re.compile(r"\n(?:[ \t\r]*\n)*")  # blank lines belong to the line before them
PATTERNS = {"sentences": _SENTENCE, "lines": _LINE}


@dataclass(frozen=True)
class Segments:
    """How to cut: `kind` is tokens (`size` a segment), parts (`size` of them), sentences or lines.

    `decode` turns ids into text with special tokens kept; sentences and lines need it.
    """

    kind: str
    size: int = 0
    decode: Decode | None = None

    def check(self, record: Record) -> None:
        """Raise RecordError where `ends` would, at little cost: nothing is cut."""
        if self.kind in PATTERNS:
            assert self.decode is not None, "sentences and lines need the tokens' text"
            _told(record, self.decode)

    def ends(self, record: Record) -> list[int]:
        """The end of each segment in tokens, ascending; the last is the length of `completion_token_ids`.

        An empty completion has no segment. Raises RecordError where the ids are not the tokens of `completion`.
        """
        ids = record["completion_token_ids"]
        match self.kind:
            case "tokens":
                return [*range(self.size, len(ids), self.size), *([len(ids)] if ids else [])]
            case "parts":
                parts = min(self.size, len(ids))  # nearly equal: their lengths differ by one token at most
                return [len(ids) * (part + 1) // parts for part in range(parts)]
            case _:
                assert self.decode is not None, "sentences and lines need the tokens' text"
                return _text_ends(record, PATTERNS[self.kind], self.decode)


def parse(text: str) -> tuple[str, int]:
    """The kind and size behind `--segments`. Raises UsageError."""
    kind, colon, size = text.partition(":")
    if kind in PATTERNS and not colon:
        return kind, 0
    if kind in ("tokens", "parts") and size.isdecimal() and len(size) < 19 and int(size) > 0:
        return kind, int(size)
    raise UsageError(f"--segments is {text}, expected tokens:N, sentences, lines or parts:N with N from 1")


def decoder(policy: Path) -> Decode:
    """Ids to text by a policy's tokenizer.json: transformers, which does the same, takes seconds to import."""
    path = policy / "tokenizer.json"
    if not path.is_file():
        raise UserError(
            f"model {policy}: has no tokenizer.json; --segments sentences and lines read it: name the policy that "
            "sampled, with its tokenizer saved by transformers"
        )
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # a torn file raises a plain Exception
        raise UserError(f"{path}: cannot be read: {first_line(error)}") from error
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=False)


def _text_ends(record: Record, pattern: re.Pattern[str], decode: Decode) -> list[int]:
    told = _told(record, decode)
    ids, text = record["completion_token_ids"], record["completion"]
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    marks = [match for match in pattern.finditer(text) if match.start() >= first and match.end() < last]
    settled = token_ends(told, text, decode) if marks else []
    cuts = sorted({bisect_left(settled, mark.end()) + 1 for mark in marks})
    # what has no text of its own, such as the end token, belongs to the last segment
    return [cut for cut in cuts if cut < len(told)] + ([len(ids)] if ids else [])


def _told(record: Record, decode: Decode) -> list[int]:
    """The ids that `completion` is the text of: all, or all but the end token. Raises RecordError if there are none."""
    check_columns(record, ["completion"], "sentences and lines are found in it; run rlvr rollout on it first")
    ids: list[int] = record["completion_token_ids"]
    if record.get("finish_reason") == "stop" and decode(ids[:-1]) == record["completion"]:
        return ids[:-1]
    if decode(ids) == record["completion"]:
        return ids
    raise RecordError(
        f"{record.where}: completion is not the text of completion_token_ids by this tokenizer; "
        "name the policy that sampled it as --model"
    )


def token_ends(ids: list[int], text: str, decode: Decode) -> list[int]:
    """How many characters of `text` (the text of `ids`) are complete after each token.

    A character that is split over tokens is complete after the last of them. Decoded in small windows that begin with
    the token before, because a token's text can depend on it (spaces, mostly): time is linear.
    """
    pieces: list[str] = []
    ends: list[int] = []
    begin = middle = done = 0  # the window's first token, its first new one, and the characters before that
    known = ""  # the text of ids[begin:middle]
    for end in range(1, len(ids) + 1):
        shown = decode(ids[begin:end])
        if len(shown) > len(known) and (end == len(ids) or not shown.endswith("\N{REPLACEMENT CHARACTER}")):
            pieces.append(shown[len(known) :])
            done += len(pieces[-1])
            begin, middle = middle, end
            known = decode(ids[begin:middle])
        ends.append(done)
    return ends if "".join(pieces) == text else _token_ends_slowly(ids, text, decode)


def _token_ends_slowly(ids: list[int], text: str, decode: Decode) -> list[int]:
    """The same in quadratic time, where a token changes the text far before it.

    Byte fallback does: one wrong byte makes a whole run of byte tokens unreadable, characters before it too.
    """
    return list(accumulate((_shared(decode(ids[: end + 1]), text) for end in range(len(ids))), max))


def _shared(one: str, other: str) -> int:
    """The length of the longest common beginning."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
