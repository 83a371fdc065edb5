r"""Where a completion states its final answer, the same for every verifier.

1. Only the text after the last `</think>` counts; a `<think>` that stays open leaves nothing to judge.
2. When there is a box, the last `\boxed{...}` is the answer. An unfinished one is no answer: an earlier box is never
   taken. Boxes that follow one another, joined by `and` or a comma, are one answer in parts; joined by `or`, or side
   by side with different values, they are a hedge, and a hedge is wrong.
3. Else the last of: `<answer>...</answer>`, `#### ...`, `the answer is ...` (or `Answer: ...`).
4. Else there is no statement, and a verifier may read the text itself (`Found.rest`), unless the text was cut.

All of it is plain scanning in time linear in the text: nothing is parsed or evaluated.
"""

import re
from dataclasses import dataclass
from typing import Any

from rlvr_cli.verifiers.judgement import Judgement, no_answer, truncated


@dataclass(frozen=True)
class Found:
    """The final answer of a completion, or why there is none.

    text: the answer as written, None when nothing states one.
    how: `box`, `tag`, `hashes`, `phrase`, or `none`.
    rest: what may be read when nothing states an answer; None when there is nothing to read.
    reason: why there is no answer, or why the answer is a hedge.
    """

    text: str | None
    how: str
    rest: str | None = None
    reason: str = ""
    hedged: bool = False
    boxes: int = 0

    @property
    def detail(self) -> dict[str, Any]:
        """What is worth saying of the extraction in `verifier_detail`."""
        return {"found_by": self.how, **({"boxes": self.boxes} if self.boxes > 1 else {})}


def find(record: dict[str, Any]) -> Found:
    """The final answer of a rollout."""
    text = visible(record["completion"], record.get("prompt") or "")
    if text is None:
        return Found(None, "none", reason="the thinking is not closed")
    found, unfinished = boxes(text)
    if unfinished:
        return Found(None, "none", reason="the last box is not closed", boxes=len(found) + 1)
    if found:
        return _last_boxes(text, found)
    cut = record.get("finish_reason") == "length"
    stated = _last_statement(text, cut)
    if stated is not None:
        return stated
    rest = None if cut or not text.strip() else text
    return Found(None, "none", rest=rest, reason="no final answer was found")


def nothing(record: dict[str, Any], reason: str) -> Judgement:
    """The judgement of a completion without an answer: `truncated` when its tokens ran out, else `no_answer`."""
    return truncated(reason) if record.get("finish_reason") == "length" else no_answer(reason)


def visible(text: str, prompt: str = "") -> str | None:
    """The text after the thinking; None when the thinking never ends. A prompt may have opened it already."""
    _, closed, answer = text.rpartition("</think>")
    if "<think>" in answer or (not closed and prompt.rstrip().endswith("<think>")):
        return None
    return answer


@dataclass(frozen=True)
class Box:
    """One outermost box: its content, and where it lies in the text."""

    content: str
    start: int
    end: int


_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*(?:(\{)|([^\s${}\\.,]+))?")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def boxes(text: str) -> tuple[list[Box], bool]:
    """The outermost boxes in order, and whether a last one is unfinished. Escaped braces do not count."""
    found: list[Box] = []
    position = 0
    while match := _BOX.search(text, position):
        if match[1]:
            end = _closing(text, match.end())
            if end is None:
                return found, True
            found.append(Box(text[match.end() : end - 1].strip(), match.start(), end))
        elif match[2]:  # TeX's other form, `\boxed 5`
            found.append(Box(match[2], match.start(), match.end()))
        else:
            return found, True
        position = found[-1].end
    return found, False


def _closing(text: str, position: int) -> int | None:
    """The place after the brace that closes the one before `position`."""
    depth = 1
    for match in _BRACE.finditer(text, position):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


JOINT = 60  # characters between two boxes of one answer, at most
_NO_WORDS = re.compile(r"\\[A-Za-z]+|[^A-Za-z\\]+|\\")
_FORMULA = re.compile(r"[-+*/<>^\d]")
_HEDGES = {"or", "either", "alternatively", "maybe", "perhaps", "possibly"}


def _last_boxes(text: str, found: list[Box]) -> Found:
    """The last box, together with those that it follows directly."""
    run = [found[-1]]
    reason = ""
    for box in reversed(found[:-1]):
        gap = text[box.end : run[0].start]
        kind = _joint(gap)
        if kind == "apart":
            break
        if box.content != run[0].content:
            if kind == "or":
                reason = "several answers joined by or"
            elif kind == "beside":
                reason = "boxes with different values side by side"
        run.insert(0, box)
    parts = list(dict.fromkeys(box.content for box in run))
    answer = ", ".join(parts)
    if not answer.strip(", "):
        return Found(None, "none", reason="the last box is empty", boxes=len(found))
    return Found(answer, "box", reason=reason, hedged=bool(reason), boxes=len(found))


def _joint(gap: str) -> str:
    """How the text between two boxes joins them: `and`, `or`, `beside`, or `apart` when it says anything else."""
    if len(gap) > JOINT or _FORMULA.search(gap):
        return "apart"
    letters = _NO_WORDS.sub(" ", gap).lower().split()
    words = {word for word in letters if len(word) > 1}  # a single letter is a variable
    if words & _HEDGES and words <= _HEDGES:
        return "or"
    if words == {"and"} or (not words and re.search("[,;&]", gap.replace("\\,", "").replace("\\;", ""))):
        return "and"
    return "apart" if words else "beside"


_TAG = re.compile("<answer>", re.IGNORECASE)
_TAG_END = re.compile("</answer>", re.IGNORECASE)
_HASHES = re.compile("####[ \t]*")
_PHRASE = re.compile(r"\banswers?\b[^.\n:=]{0,60}?(?:\bis\b|\bare\b|[:=])[\s*:]*", re.IGNORECASE)


def _last_statement(text: str, cut: bool) -> Found | None:
    """The tag, hashes or phrase that comes last. In a cut text, one that runs into the end may be half an answer."""
    spans: list[tuple[int, int, int, str]] = []  # where the statement begins, its answer begins and ends, its kind
    if tag := _last(_TAG, text):
        closing = _TAG_END.search(text, tag.end())  # absent when `</answer>` was a stop string
        spans.append((tag.start(), tag.end(), closing.start() if closing else len(text), "tag"))
    if hashes := _last(_HASHES, text):
        line_end = text.find("\n", hashes.end())
        spans.append((hashes.start(), hashes.end(), line_end if line_end >= 0 else len(text), "hashes"))
    if phrase := _last(_PHRASE, text):
        spans.append((phrase.start(), phrase.end(), _statement_end(text, phrase.end()), "phrase"))
    for _, start, end, how in sorted(spans, reverse=True):
        answer = text[start:end].strip().strip("*").strip()
        if answer and not (cut and end >= len(text)):
            return Found(answer, how)
    return None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007
        pass
    return match


_SPANS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"))
_SENTENCE_END = re.compile(r"\.(?=\s|\*|$)|\n|<\|")


def _statement_end(text: str, start: int) -> int:
    """Where a statement that begins at `start` ends: with its display of mathematics, its sentence or its line."""
    for opener, closer in _SPANS:
        if text.startswith(opener, start):
            end = text.find(closer, start + len(opener))
            if end >= 0:
                return end + len(closer)
    match = _SENTENCE_END.search(text, start)
    return match.start() if match else len(text)


_OR = re.compile(r"(?:\b|\\text\s*\{\s*)or\b", re.IGNORECASE)


def hedges(answer: str) -> bool:
    """Whether an answer offers alternatives: `A or B`."""
    return _OR.search(answer) is not None
