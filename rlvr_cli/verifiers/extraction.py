r"""Where a completion states its final answer, the same for every verifier.

1. Only the text after the last `</think>` counts; a `<think>` that stays open leaves nothing to judge.
2. When there is a box, the last `\boxed{...}` is the answer. An unfinished one is no answer: an earlier box is never
   taken. Boxes that follow one another, joined by `and` or a comma, are one answer in parts; joined by `or`, or side
   by side with different values, they are a hedge, and a hedge is wrong. Only `the final answer is ...` with
   mathematics in it, said after the last box, counts more than the box.
3. Else the last of: `<answer>...</answer>`, `#### ...`, `the answer is ...` (or `Answer: ...`, in several languages).
4. Else there is no statement, and a verifier may read the text itself (`Found.rest`), unless the text was cut.

All of it is plain scanning in time linear in the text: nothing is parsed or evaluated.
"""

import re
from typing import Any, NamedTuple

from rlvr_cli.verifiers.judgement import Judgement, no_answer, truncated


class Found(NamedTuple):  # made for each record: half the time of a dataclass
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
        return {"found_by": self.how, "boxes": self.boxes} if self.boxes > 1 else {"found_by": self.how}


def find(record: dict[str, Any]) -> Found:
    """The final answer of a rollout."""
    text = visible(record["completion"], record.get("prompt") or "")
    if text is None:
        return Found(None, "none", reason="the thinking is not closed")
    cut = record.get("finish_reason") == "length"
    if "\\boxed" in text or "\\fbox" in text:
        found, unfinished = boxes(text)
        if unfinished:
            return Found(None, "none", reason="the last box is not closed", boxes=len(found) + 1)
        if found:
            return _final_words(text, found, cut) or _last_boxes(text, found)
    stated = _last_statement(text, cut)
    if stated is not None:
        return stated
    rest = None if cut or not text.strip() else text
    return Found(None, "none", rest=rest, reason="no final answer was found")


def find_box(record: dict[str, Any]) -> Found:
    """The last box of a rollout, whatever else it states."""
    text = visible(record["completion"], record.get("prompt") or "")
    if text is None:
        return Found(None, "none", reason="the thinking is not closed")
    found, unfinished = boxes(text)
    if unfinished:
        return Found(None, "none", reason="the last box is not closed", boxes=len(found) + 1)
    return _last_boxes(text, found) if found else Found(None, "none", reason="there is no box")


def nothing(record: dict[str, Any], reason: str) -> Judgement:
    """The judgement of a completion without an answer: `truncated` when its tokens ran out, else `no_answer`."""
    return truncated(reason) if record.get("finish_reason") == "length" else no_answer(reason)


_THINKING = re.compile(r"<(/?)think(?:ing)?>")


def visible(text: str, prompt: str = "") -> str | None:
    """The text after the thinking; None when the thinking never ends. A prompt may have opened it already."""
    closed = "</think" in text
    if closed or "<think" in text:
        last = None
        for match in _THINKING.finditer(text):
            last = match
        if last is not None:
            return text[last.end() :] if last[1] else None
    if prompt[-1:].isspace():
        prompt = prompt.rstrip()
    return None if prompt.endswith(("<think>", "<thinking>")) else text


class Box(NamedTuple):
    """One outermost box: its content, and where it lies in the text."""

    content: str
    start: int
    end: int


_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*(?:(\{)|([^\s${}\\.,]+))?")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def boxes(text: str) -> tuple[list[Box], bool]:
    """The outermost boxes in order, and whether a last one is unfinished. Escaped braces do not count.

    A blank line ends mathematics in TeX: a box left open before one is no longer the last when a box follows it.
    """
    start = text.find("\\boxed{")
    end = text.find("}", start)
    if start >= 0 <= end and "\\fbox" not in text and text.rfind("\\boxed") == start:  # one plain box, as most have
        content = text[start + 7 : end]
        if "{" not in content and "\\" not in content:
            return [Box(content.strip(), start, end + 1)], False
    found, unfinished = _boxes(text, 0)
    if unfinished is not None:
        blank = text.rfind("\n\n", unfinished, max(text.rfind("\\boxed"), text.rfind("\\fbox"), unfinished))
        if blank >= 0:
            later, unfinished = _boxes(text, blank)
            found += later
    return found, unfinished is not None


def _boxes(text: str, position: int) -> tuple[list[Box], int | None]:
    """The outermost boxes from a position on, and where one begins that is unfinished."""
    found: list[Box] = []
    while match := _BOX.search(text, position):
        if match[1]:
            end = _closing(text, match.end())
            if end is None:
                return found, match.start()
            found.append(Box(text[match.end() : end - 1].strip(), match.start(), end))
        elif match[2]:  # TeX's other form, `\boxed 5`
            found.append(Box(match[2], match.start(), match.end()))
        else:
            return found, match.start()
        position = found[-1].end
    return found, None


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
_MARKS = re.compile(r"\\(?:text|textrm|mathrm|quad|qquad|[()\[\],;! ])|[${}*_]+|\s+")
_LABELLED = re.compile(r"(?:^|[ ])and[ ](?:[A-Za-z][ ]?[0-9]*(?:\([A-Za-z]\))?[ ]?=)?[ ]?$", re.IGNORECASE)
_CONCLUDES = re.compile(
    r"[.:!?]|\b(?:is|are|was|were|be|so|thus|hence|then|therefore|we|which|since|because|but|not|get|gives?|or|also)\b",
    re.IGNORECASE,
)
_HEDGES = {"or", "either", "alternatively", "maybe", "perhaps", "possibly"}


def _last_boxes(text: str, found: list[Box]) -> Found:
    """The last box, together with those that it follows directly."""
    if len(found) == 1 and found[0].content:
        return Found(found[0].content, "box", boxes=1)
    run = [found[-1]]
    reason = ""
    for box in reversed(found[:-1]):
        kind = _joint(text[box.end : run[-1].start])
        if kind == "apart":
            break
        if box.content != run[-1].content:
            if kind == "or":
                reason = "several answers joined by or"
            elif kind == "beside":
                reason = "boxes with different values side by side"
        run.append(box)
    parts = list(dict.fromkeys(box.content for box in reversed(run)))
    answer = ", ".join(parts)
    if not answer.strip(", "):
        return Found(None, "none", reason="the last box is empty", boxes=len(found))
    return Found(answer, "box", reason=reason, hedged=bool(reason), boxes=len(found))


def _joint(gap: str) -> str:
    """How the text between two boxes joins them: `and`, `or`, `beside`, or `apart` when it says anything else."""
    if len(gap) > JOINT:
        return "apart"
    if _named(gap):
        return "and"
    if _FORMULA.search(gap):
        return "apart"
    letters = _NO_WORDS.sub(" ", gap).lower().split()
    words = {word for word in letters if len(word) > 1}  # a single letter is a variable
    if words & _HEDGES and words <= _HEDGES:
        return "or"
    if words == {"and"} or (not words and re.search("[,;&]", gap.replace("\\,", "").replace("\\;", ""))):
        return "and"
    return "apart" if words else "beside"


def _named(gap: str) -> bool:
    """Whether a gap names what is in the boxes and joins them: ` apples and `, ` for part (a) and `, ` and y_2 = `."""
    plain = _MARKS.sub(" ", gap)
    plain = re.sub(" +", " ", plain)
    joint = _LABELLED.search(plain)
    return joint is not None and not _FORMULA.search(plain, 0, joint.start()) and not _CONCLUDES.search(plain)


_TAG = re.compile(r"<answer>|<\|begin_of_box\|>", re.IGNORECASE)
_TAG_END = re.compile(r"</answer>|<\|end_of_box\|>", re.IGNORECASE)
_IN_ENGLISH = r"(?<!<)(?<!</)\banswers?\b[^.\n:=]{0,60}?(?:\bis\b|\bare\b|[:=])[\s*:]*"
_ELSEWHERE = (
    r"(?:答案|答え|정답|\b(?:réponse|respuesta|resposta|risposta|antwort|ответ)\b|الجواب|الإجابة)"
    r"[^.\n:=：。]{0,40}?(?:\b(?:est|es|é|è|ist)\b|[:=：是为は])[\s*:：]*"
)
_PHRASE_AT = re.compile(_IN_ENGLISH, re.IGNORECASE)
_ANSWER_ANYWHERE = re.compile(rf"{_IN_ENGLISH}|{_ELSEWHERE}", re.IGNORECASE)
_FINAL = re.compile(r"\bfinal\s+answer\b[^.\n:=]{0,60}?(?:\bis\b|\bare\b|[:=])[\s*:]*", re.IGNORECASE)
_MATHEMATICS = re.compile(r"(?:[-+(\[{$€£¥]|\\[$(\[{]|\s)*(?:\d|\\[a-z]+|[a-z]\s*=|\.\d)", re.IGNORECASE)


def _final_words(text: str, found: list[Box], cut: bool) -> Found | None:
    """What is called the final answer after the last box, when that is mathematics."""
    start = found[-1].end
    if "nswer" not in text[start:] and "NSWER" not in text[start:]:
        return None
    match = _last(_FINAL, text, start)
    if match is None or not _MATHEMATICS.match(text, match.end()):
        return None
    end = _statement_end(text, match.end())
    answer = text[match.end() : end].strip().strip("*").strip()
    if not answer or (cut and end >= len(text)):
        return None
    return Found(answer, "phrase", boxes=len(found))


def _last_statement(text: str, cut: bool) -> Found | None:
    """The tag, hashes or phrase that comes last. In a cut text, one that runs into the end may be half an answer."""
    spans: list[tuple[int, int, int, str]] = []  # where the statement begins, its answer begins and ends, its kind
    small = text.lower()
    if ("<answer>" in small or "<|begin" in small) and (tag := _last(_TAG, text)):
        closing = _TAG_END.search(text, tag.end())  # absent when `</answer>` was a stop string
        spans.append((tag.start(), tag.end(), closing.start() if closing else len(text), "tag"))
    hashes = text.rfind("####")
    if hashes >= 0:
        line_end = text.find("\n", hashes)
        spans.append((hashes, hashes + 4, line_end if line_end >= 0 else len(text), "hashes"))
    if phrase := _last_phrase(text, small):
        start, end = phrase.span()
        spans.append((start, end, _statement_end(text, end), "phrase"))
    if len(spans) > 1:
        spans.sort(reverse=True)
    for _, start, end, how in spans:
        answer = text[start:end].strip()
        if answer[:1] == "*" or answer[-1:] == "*":
            answer = answer.strip("*").strip()
        if answer and not (cut and end >= len(text)):
            return Found(answer, how)
    return None


_WORDS = ("réponse", "ответ", "答案", "答え", "정답", "الجواب", "الإجابة")
TRIES = 50  # times that the word is met without a statement, before all of the text is searched in one pass


def _last_phrase(text: str, small: str) -> re.Match[str] | None:
    """The last phrase that states an answer; `small` is the text in small letters."""
    if "spost" in small or "respuesta" in small or "antwort" in small:
        return _last(_ANSWER_ANYWHERE, text)
    # a capital's small letter can be longer; else the places are the same
    if not text.isascii() and (len(small) != len(text) or any(word in small for word in _WORDS)):
        return _last(_ANSWER_ANYWHERE, text)
    position = len(small)
    for _ in range(TRIES):
        position = small.rfind("answer", 0, position)
        if position < 0:
            return None
        match = _PHRASE_AT.match(text, position)
        if match is not None and (position == 0 or not (text[position - 1].isalnum() or text[position - 1] == "_")):
            return match
    return _last(_PHRASE_AT, text)


def _last(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text, start):  # noqa: B007
        pass
    return match


_SPANS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"))
_SENTENCE_END = re.compile(r"\.(?=[\s*]|\Z)|[\n。]|<\||</[aA]")


def _statement_end(text: str, start: int) -> int:
    """Where a statement that begins at `start` ends: with its display of mathematics, its sentence or its line."""
    if text[start : start + 1] in ("$", "\\"):
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
