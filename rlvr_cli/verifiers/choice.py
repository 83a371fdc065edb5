r"""One letter of a multiple choice: `B`, `(B)`, `B. Paris`, `\boxed{\text{(B)}}`, `the answer is (B)`.

The answer is a letter, alone, in parentheses or before its option's text. The column `choices`, when there, is a list
of the options' texts: then an option's own text stands for its letter, in the answer too, and letters beyond are none.

A completion states its letter in a box, tag or sentence: there the first letter that stands alone counts. Otherwise, in
this order: a letter that begins the text (`B. Because ...`), unless options are being listed there; a letter that is
chosen in words (`I pick B`, `option B is correct`); the last letter that stands alone. A letter that is ruled out
(`not A`, `A is wrong`) is passed over. Several letters joined (`A or B`, `A, B`, `A B`) are a hedge, and wrong; so is a
letter with the text of another option.

Letters are capitals (full-width and other styled ones too): `a` is an article, and so is a lone `A` or `I` before a
word in small letters. A small letter counts where it is all of a box or tag, in parentheses (`(b)`), or when the answer
of the record is one.
"""

import re
import unicodedata
from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import nothing
from rlvr_cli.verifiers.final import final_answer, shown
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong
from rlvr_cli.verifiers.text import bare

TAIL = 4000  # characters at the end of prose that are looked at
LONGEST = 4000  # of a statement

_WRAPPING = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it)|rm|bf|mbox|operatorname)(?![A-Za-z])\s*|[${}]")
_MARKS = re.compile(r"\\[()\[\],;! ]|\*\*|__|`")
_LABEL = re.compile(
    r"[\s:*]*(?:(?:option|choice|answer)\s+)?[(\[]?([A-Z])(?:[)\]]|(?=$|[\s.,:;。，：、]))", re.IGNORECASE
)
_LETTER = re.compile(r"(?<![A-Za-z0-9'’\\&])([(\[]?)([A-Z])(?![A-Za-z0-9'’&])([)\]]?)")
_SMALL = re.compile(r"[\s:*]*\(([a-z])\)|[\s:*]*\[?([a-z])[)\].]?\s*\Z")
_LINE = re.compile(r"^[ \t*>-]*[(\[]?([A-Z])[)\].:][)\]*]*[ \t]+\S.*$", re.MULTILINE)
_BETWEEN = r"(?:[,/&|;+\s]|\b(?:and|or|perhaps|maybe|possibly|even)\b)"
_JOINT = re.compile(rf"[)\]]?{_BETWEEN}*", re.IGNORECASE)
_JOINED = re.compile(rf"(?<![A-Za-z0-9'’])[(\[]?([A-Z])[)\]]?{_BETWEEN}+[(\[]?\Z")
_NEXT_WORD = re.compile(r"\s{1,9}(?!(?:and|or|is|because|since|as)\b)[a-z]")
_RULED_OUT_BEFORE = re.compile(
    r"(?:n['’]t(?: be)?|\b(?:not|cannot be|neither|nor|than|except|unlike|against|eliminat\w+|exclud\w+|ruled? out))"
    r"\s+(?:be\s+)?(?:the\s+)?(?:option|choice|answer)?\s*[(\[]?\Z"
    r"|(?:不是|并非|排除|ではなく|아니라|\b(?:pas|no es|não é|nicht|non|не)\s)\s*[(\[]?\Z",
    re.IGNORECASE,
)
_RULED_OUT_AFTER = re.compile(
    r"[)\]]?\s+(?:is|are|was|were|seems?|looks|can|could|do|does|did|must be)?\s*(?:also\s+|clearly\s+|simply\s+)?"
    r"(?:not\b|n['’]t\b|cannot\b|can['’]t\b|isn['’]t\b|doesn['’]t\b|wrong|incorrect|false|invalid|impossible|eliminated"
    r"|ruled out|out\b|implausible)|[)\]]?\s*(?:项|选项)?(?:不对|错误|不正确|是错)",
    re.IGNORECASE,
)
_CHOSEN = [
    re.compile(
        r"(?i:\b(?:option|choice)\b[^.\n]{0,30}?(?:\bis\b|:)|\b(?:choose|pick|select|opt for|chose|picked)"
        r"|\bgo(?:ing)? with"
        r"|\b(?:it|that|this)['’]?s|\bit (?:is|must be|has to be))"
        r"(?i:\s*(?:the\s+)?(?:option|choice|letter)?\s*)[*:]*\s*[(\[]?([A-Z])(?![A-Za-z0-9'’])",
    ),
    re.compile(
        r"(?<![A-Za-z0-9'’])[(\[]?([A-Z])[)\]]?(?:\s+(?:is|must be|seems)|,)\s+(?:clearly\s+|therefore\s+|thus\s+)?"
        r"(?:the\s+)?(?:correct|right|best|answer|true)\b"
    ),
    re.compile(r"(?:选|选择|选项|答案|应为|故)(?:答案|是|为|[:：])*\s*[(\[]?([A-Z])(?![A-Za-z0-9])"),
]


def check(record: Record) -> None:
    """The answer names a letter, and `choices` are texts. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="choice compares with a letter")
    choices = record.get("choices")
    if choices is not None and not (isinstance(choices, list) and 0 < len(choices) <= 26):
        raise RecordError(f"{record.where}: choices is {shown(str(choices))}, expected a list of the options' texts")
    if _gold(record) is None:
        beyond = " of choices" if choices is not None else ""
        raise RecordError(
            f"{record.where}: answer is {shown(record['answer'])}, expected a letter{beyond} such as B or (B)"
        )


def judge(record: Record) -> Judgement:
    """Compare the completion's letter with the answer's."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    gold = _gold(record)
    stated = found.how != "none"
    if stated and len(text) > LONGEST:
        return wrong(text[:LONGEST], f"the answer has {len(text)} characters", **found.detail)
    text = _plain(text if stated else text[-TAIL:] if len(text) > TAIL else text)
    options = _options(record)
    letter, reason = _letter(text, found.how, options, small=record["answer"].strip("() .").islower())
    if letter is None:
        return (
            wrong(text[:200], reason, **found.detail) if reason else nothing(record, "there is no letter in the answer")
        )
    return correct(letter, **found.detail) if letter == gold else wrong(letter, f"expected {gold}", **found.detail)


quick = judge


def _plain(text: str) -> str:
    """The text without LaTeX and Markdown around words, and with ASCII letters in place of styled ones."""
    return _MARKS.sub("", _WRAPPING.sub("", unicodedata.normalize("NFKC", text))).strip()


def _options(record: Record) -> tuple[str, ...]:
    """The options' texts as they are compared; none when the record does not have them."""
    return tuple(_option(str(choice)) for choice in record.get("choices") or ())


@lru_cache(maxsize=4096)
def _option(choice: str) -> str:
    return bare(choice)


def _gold(record: Record) -> str | None:
    """The letter of the answer."""
    answer, options = _plain(record["answer"]), _options(record)
    match = _LABEL.match(answer)
    letter = match[1].upper() if match and not _hedged(answer, match.start(1), match.end(1)) else None
    if letter is None:
        named = re.findall(r"\(([A-Z])\)", answer)
        letter = named[-1] if len(set(named)) == 1 else None
    if options and (letter is None or not _within(letter, options) or (match and len(answer) > 3)):
        return _by_text(answer, options) or (letter if letter and _within(letter, options) else None)
    return letter


def _by_text(text: str, options: tuple[str, ...]) -> str | None:
    """The letter whose option's text this is."""
    wanted = bare(text)
    same = [at for at, option in enumerate(options) if option and option == wanted]
    return chr(ord("A") + same[0]) if len(same) == 1 else None


def _within(letter: str, options: tuple[str, ...]) -> bool:
    return not options or ord(letter) - ord("A") < len(options)


def _letter(text: str, how: str, options: tuple[str, ...], small: bool) -> tuple[str | None, str]:
    """The letter that a text names, or none and perhaps the reason why it is a hedge."""
    stated = how != "none"
    if len(text) <= 1000 and (by_text := _by_text(text, options)) and len(text) > 1:
        return by_text, ""
    if match := _SMALL.match(text):
        letter = (match[1] or match[2]).upper()
        if (match[1] or small or how in ("box", "tag")) and _within(letter, options):
            return letter, ""
    label = _LABEL.match(text)
    listed = stated or len({line[1] for line in _LINE.finditer(text)}) <= 1
    if label and listed and label[1].isupper() and _within(label[1], options) and not _is_word(text, label.end(1)):
        if _hedged(text, label.start(1), label.end(1)):
            return None, "several letters where one is asked for"
        letter = label[1]
        other = _by_text(text[label.end() :].lstrip(" )].:,-–—"), options) if len(text) <= 1000 else None
        if other and other != letter:
            return None, f"the letter {letter} with the text of option {other}"
        return letter, ""
    if not listed:
        text = _LINE.sub("", text)
    place = None if stated else _chosen(text, options)
    if place is None:
        places = [
            match.start(2)
            for match in _LETTER.finditer(text)
            if _within(match[2], options) and not _passed_over(text, match)
        ]
        place = (places[0] if stated else places[-1]) if places else None
    if place is None:
        return None, ""
    if _hedged(text, place, place + 1):
        return None, "several letters where one is asked for"
    return text[place], ""


def _chosen(text: str, options: tuple[str, ...]) -> int | None:
    """Where a letter is chosen in words, the last time."""
    places = [
        match.start(1)
        for pattern in _CHOSEN
        for match in pattern.finditer(text)
        if _within(match[1], options) and not _is_word(text, match.end(1)) and not _ruled_out(text, match.start(1))
    ]
    return max(places, default=None)


def _is_word(text: str, end: int) -> bool:
    """Whether a letter is the English word: `A` or `I` before a word in small letters."""
    return text[end - 1] in "AI" and _NEXT_WORD.match(text, end) is not None


def _passed_over(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is no choice: a word, or ruled out."""
    bracketed = match[1] and match[3]
    return (not bracketed and _is_word(text, match.end(2))) or _ruled_out(text, match.start(2))


def _ruled_out(text: str, place: int) -> bool:
    before, after = text[max(0, place - 60) : place], text[place + 1 : place + 60]
    return bool(_RULED_OUT_BEFORE.search(before) or _RULED_OUT_AFTER.match(after))


def _hedged(text: str, start: int, end: int) -> bool:
    """Whether a letter is joined with another one: by `or`, `and`, a comma, a slash, or nothing but space."""
    joint = _JOINT.match(text, end)
    behind = _LETTER.match(text, joint.end()) if joint else None
    if behind and behind[2] != text[start] and joint and joint.end() > end and not _is_word(text, behind.end(2)):
        return True
    before = text[max(0, start - 24) : start]
    joined = _JOINED.search(before)
    return bool(joined and joined[1] != text[start])
