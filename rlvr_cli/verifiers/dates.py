"""Dates as people write them, so that `May 5, 2020` is no list of numbers and `2020-05-05` no subtraction."""

import re

_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october"]
_MONTHS += ["november", "december"]
_MONTH = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + r"|sept)\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:\s*,?\s*(?P<year>\d{4}))?"
_WRITTEN = [
    re.compile(rf"(?:[a-z]+day,?\s+)?{_MONTH}\s+{_DAY}{_YEAR}", re.IGNORECASE),
    re.compile(rf"(?:[a-z]+day,?\s+)?(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}", re.IGNORECASE),
    re.compile(r"(?P<year>\d{4})-(?P<month>0\d|1[0-2])-(?P<day>[0-3]\d)"),
    re.compile(r"(?P<year>\d{4})/(?P<month>0?\d|1[0-2])/(?P<day>[0-3]?\d)"),
]
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})")  # the order of day and month is not known
_LATEX = re.compile(r"\\(?:text\w*|mbox|mathrm)\s*\{([^{}]*)\}|\\[,;: ]")

Date = tuple[int | str, ...]


def date(text: str) -> Date | None:
    """The date that a text is: year (0 when not said), month, day; or the three numbers of `1/2/2020` as they stand."""
    if len(text) > 80:
        return None
    text = " ".join(_LATEX.sub(lambda match: match[1] or " ", text).split())
    for pattern in _WRITTEN:
        if match := pattern.fullmatch(text):
            name = match["month"].lower()[:3]
            month = int(name) if name.isdigit() else next(i for i, full in enumerate(_MONTHS, 1) if full[:3] == name)
            return int(match["year"] or 0), month, int(match["day"])
    if match := _SLASHED.fullmatch(text):
        return "slashed", int(match[1]), int(match[3]), int(match[4])
    return None
