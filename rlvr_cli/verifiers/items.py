r"""Lists as people and models write them: `1, 2, 3`, `[1, "two"]`, `\{1, 2\}`, `(a, b) and (c, d)`, bullets on lines.

An item is compared by its key: its exact value when it is a number (0.5 is 1/2), a list of keys when it is a bracketed
list itself, else its text as the verifier `text` compares it; formulas are compared without their spaces.
"""

import json
import re
from fractions import Fraction

from rlvr_cli.verifiers.numbers import only_number
from rlvr_cli.verifiers.text import bare

LONGEST = 10_000  # characters of a list
DEEPEST = 8  # levels of lists in lists

Key = Fraction | str | tuple["Key", ...]

_OPENING = {"(": ")", "[": "]", "{": "}", "⟨": "⟩"}
_CLOSING = set(_OPENING.values())
_WRAPPED = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it)|mbox|operatorname)\s*\{([^{}]*)\}")
_REWRITES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\\(?:left|right|bigl?|bigr?|displaystyle)(?![A-Za-z])\s*|\\[!]|\$|\*\*|`"), ""),
    (re.compile(r"\\([{}])"), r"\1"),
    (re.compile(r"\\langle(?![A-Za-z])"), "⟨"),
    (re.compile(r"\\rangle(?![A-Za-z])"), "⟩"),
    (re.compile(r"\\(?:to|(?:long)?rightarrow|Rightarrow|mapsto)(?![A-Za-z])|→|⟶|⇒|->|=>"), "→"),
    (re.compile(r"\\(?:q?quad|[,;: ])(?![A-Za-z])|~|&nbsp;"), " "),
    (re.compile(r"\\[()\[\]]"), " "),
    (re.compile(r"\{,\}"), ""),
    (re.compile(r"\\(?:emptyset|varnothing)(?![A-Za-z])|∅"), "[]"),
]
_EMPTY = {"[]", "()", "{}", "", "none", "empty", "empty set", "empty list"}
_BULLET = re.compile(r"\s*(?:[-*•]|\(?\d{1,3}[.)])\s+(\S.*)")
_AND = re.compile(r",? ?(?:\band\b|&) ?", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|\Z))")


def keys(text: str) -> tuple[Key, ...]:
    """The keys of the items of a list. Raises ValueError where there are too many characters or levels."""
    text = single_spaces(text)
    if len(text) > LONGEST:
        raise ValueError(f"the list has {len(text)} characters")
    listed = _json(text)
    return tuple(_json_key(item, 1) for item in listed) if listed is not None else _keys(_plain(text), 1)


def single_spaces(text: str) -> str:
    """The text with runs of white space as one space, or one line end where there is one among them."""
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def _json(text: str) -> list[object] | None:
    """The list that a text is in JSON, its numbers kept as they are written."""
    if text.lstrip()[:1] != "[":
        return None
    try:
        value = json.loads(text, parse_int=_Written, parse_float=_Written, parse_constant=_Written)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


class _Written(str):
    """A number of a JSON text, as written there."""


def _json_key(item: object, level: int) -> Key:
    if isinstance(item, list):
        if level >= DEEPEST:
            raise ValueError(f"lists nested deeper than {DEEPEST} levels")
        return tuple(_json_key(it, level + 1) for it in item)
    if isinstance(item, str):
        return _key(item, level)
    return bare(json.dumps(item, sort_keys=True))


def _plain(text: str) -> str:
    for pattern, written in _REWRITES:
        text = pattern.sub(written, text)
    return _WRAPPED.sub(r"\1", text).strip()


def _keys(text: str, level: int) -> tuple[Key, ...]:
    """The keys of a plain text's items."""
    text = text.strip()
    if text[-1:] == "." and not text[:-1].endswith("."):
        text = text[:-1].rstrip()
    inner = _inside(text)
    text = text if inner is None else inner.strip()
    if text.casefold() in _EMPTY:
        return ()
    if level > DEEPEST:
        raise ValueError(f"lists nested deeper than {DEEPEST} levels")
    return tuple(_key(part, level) for part in _split(text))


def _key(item: str, level: int) -> Key:
    item = item.strip()
    if number := only_number(item):
        return number.value
    item = _plain(item)
    inner = _inside(item)
    if inner is not None and len(_split(inner)) > 1:
        return _keys(item, level + 1)
    if any(sign in item for sign in "\\^="):
        return re.sub(r"\s+|(?<=\\)[dt](?=frac)", "", item)
    return bare(item) or item


def _inside(text: str) -> str | None:
    """What is between the brackets around all of a text; None when there are none. Half-open intervals count too."""
    if len(text) < 2 or text[0] not in _OPENING or text[-1] not in _CLOSING:
        return None
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 and _OPENING[text[0]] == text[-1] else None
    return None


def _split(text: str) -> list[str]:
    """The items of a text: its bullets, or what stands between separators outside of brackets."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        bullets = [_BULLET.fullmatch(line) for line in lines]
        return [match[1] if match else line.strip().rstrip(",;") for match, line in zip(bullets, lines, strict=True)]
    if ", " in text or ";" in text:
        text = _THOUSANDS.sub("", text)  # 1,234, 5
    separator = next((sign for sign in ";→," if sign in text), None)
    parts = [text] if separator is None else _at_top(text, separator)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()  # a separator at the end
    last = [part for part in _AND.split(parts[-1]) if part.strip()] if separator in (None, ",") else [parts[-1]]
    return parts[:-1] + last if last else parts


def _at_top(text: str, separator: str) -> list[str]:
    """The text split where the separator stands outside of brackets and quotation marks."""
    parts, begun, depth, quoted = [], 0, 0, False
    for at, sign in enumerate(text):
        if sign == '"':
            quoted = not quoted
        elif not quoted and sign in _OPENING:
            depth += 1
        elif not quoted and sign in _CLOSING:
            depth -= 1
        elif sign == separator and depth <= 0 and not quoted:
            parts.append(text[begun:at])
            begun = at + 1
    return [*parts, text[begun:]]
