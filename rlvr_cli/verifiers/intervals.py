r"""Inequalities in one variable, joined by `or`, written as a union of intervals: `x<1 \text{ or } x>2`."""

import re

_SIGNS = {"<": "<", ">": ">", "\\lt": "<", "\\gt": ">", "\\le": "≤", "\\ge": "≥", "\\leq": "≤", "\\geq": "≥"}
_SIGNS |= {"\\leqslant": "≤", "\\geqslant": "≥", "<=": "≤", ">=": "≥", "≤": "≤", "≥": "≥"}
_SIGN = re.compile(r"\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt)(?![A-Za-z])|<=|>=|[<>≤≥]")
_OR = re.compile(
    r"\s*,?\s*(?:\\(?:text\w*|mbox)\s*\{\s*or\s*\}|(?<![A-Za-z\\])or(?![A-Za-z])|\\(?:lor|vee)(?![A-Za-z]))\s*"
)
_VARIABLE = re.compile(r"[A-Za-z]|\\(?:theta|alpha|beta|lambda)")
MOST = 10  # parts of a union


def union(text: str) -> str | None:
    """The union of intervals that alternatives of inequalities are; None when the text is none."""
    parts = _OR.split(text.strip())
    if not 2 <= len(parts) <= MOST:
        return None
    named = [_intervals(part) for part in parts]
    common = set(named[0]).intersection(*named)
    if len(common) != 1:
        return None
    variable = common.pop()
    return "\\cup ".join(one[variable] for one in named)


def _intervals(text: str) -> dict[str, str]:
    """The interval of an inequality, for each letter that can be its variable; none when it is no inequality."""
    sides = [side.strip() for side in _SIGN.split(text)]
    signs = [_SIGNS[sign] for sign in _SIGN.findall(text)]
    if not all(sides) or len(signs) not in (1, 2) or "=" in text.replace("<=", "").replace(">=", ""):
        return {}
    if len(signs) == 1:
        return {sides[at]: _ray(sides, signs[0], at) for at in (0, 1) if _VARIABLE.fullmatch(sides[at])}
    if not _VARIABLE.fullmatch(sides[1]) or len({sign in "<≤" for sign in signs}) != 1:
        return {}
    if signs[0] in ">≥":
        sides, signs = sides[::-1], signs[::-1]
    return {sides[1]: f"{'[' if signs[0] in '≤≥' else '('}{sides[0]},{sides[2]}{']' if signs[1] in '≤≥' else ')'}"}


def _ray(sides: list[str], sign: str, at: int) -> str:
    """The interval of `x < 3`, where `x` is the side `at`."""
    end, closed = sides[1 - at], sign in "≤≥"
    if (sign in "<≤") == (at == 0):
        return f"(-\\infty,{end}{']' if closed else ')'}"
    return f"{'[' if closed else '('}{end},\\infty)"
