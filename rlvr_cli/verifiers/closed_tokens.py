"""The parts that a closed number in LaTeX is made of."""

import re

from rlvr_cli.verifiers.closed_numbers import NotClosedError

LONGEST = 400  # characters
DEEPEST = 20  # levels of braces and parentheses

_TOKEN = re.compile(
    r"(?P<space>\s+|\\[,;:!> ]|\\q?quad(?![A-Za-z])|~"
    r"|\\(?:left|right|[bB]igg?[lr]?|displaystyle)(?![A-Za-z]))"
    r"|(?P<number>\d+(?:\.\d+)?|\.\d+)"
    r"|\\(?:begin|end)\{[a-z]*matrix\}|\\(?:begin\{array\}\s*\{[lcr|]*\}|end\{array\})"
    r"|\\(?:[A-Za-z]+|[{}\\])|[A-Za-z]|[-+*/^!(){}\[\],;&_]"
)


def tokens(text: str) -> list[str]:
    """The parts of a text without its spaces. Raises NotClosedError for what is too long, too deep or unknown."""
    if len(text) > LONGEST:
        raise NotClosedError("too long")
    found: list[str] = []
    position = depth = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotClosedError(f"{text[position]!r} is no part of a number")
        spaced, position = position, match.end()
        if match["space"] is not None:
            continue
        if match["number"] and found and found[-1][-1].isdigit() and text[spaced - 1] != found[-1][-1]:
            raise NotClosedError("two numbers side by side")
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(match[0], 0)
        if depth > DEEPEST:
            raise NotClosedError("too deep")
        found.append(match[0])
    return found
