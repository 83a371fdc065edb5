"""Suspect labels: problems whose completions agree with each other and not with the problem's answer.

The rule: of at least LEAST judged completions of a problem, more than half were judged wrong with one and the same
extracted answer. Extracted answers are the same when they are the same number, or the same text without white space,
`$`, LaTeX's spacing and sizes, a trailing period and the difference of capitals. A policy's favourite mistake looks
just the same, so the list is for people to look at.

Memory: one small counter a problem, of at most VALUES values of at most LONGEST characters. A further value lowers all
the counts by one instead (Misra and Gries, 1982), which can hide an agreement that is hardly a majority, and invents
none.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rlvr_cli.records import Record, problem_id
from rlvr_cli.verifiers.numbers import only_number

LEAST = 4
VALUES = 32
LONGEST = 200

_LAYOUT = re.compile(r"\s+|\$|\\(?:left|right|displaystyle|[,!;:> ])|\\\(|\\\)|\\\[|\\\]|\.\Z")


@dataclass(slots=True)
class _Problem:
    answer: str | None
    verifier: str
    where: str
    judged: int = 0
    correct: int = 0
    values: dict[Hashable, tuple[str, int]] = field(default_factory=dict)  # as first written, and how many

    def add(self, extracted: str) -> None:
        key = same(extracted)
        text, count = self.values.get(key, (extracted, 0))
        if count or len(self.values) < VALUES:
            self.values[key] = (text, count + 1)
        else:
            self.values = {key: (text, count - 1) for key, (text, count) in self.values.items() if count > 1}


class Audit:
    """Counts scored records as they go by, then names the suspects."""

    def __init__(self) -> None:
        self._problems: dict[str, _Problem] = {}

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass scored records on and count them."""
        for record in records:
            self._add(record)
            yield record

    def _add(self, record: Record) -> None:
        if record["verdict"] == "error":  # nobody knows what it says
            return
        name = problem_id(record)
        problem = self._problems.get(name)
        if problem is None:
            verifier = record["verifier_detail"]["verifier"]
            problem = self._problems[name] = _Problem(record.get("answer"), verifier, record.where)
        problem.judged += 1
        problem.correct += record["verdict"] == "correct"
        if record["verdict"] == "wrong" and "extracted" in record:
            problem.add(record["extracted"][:LONGEST])

    def suspects(self) -> list[dict[str, Any]]:
        """One row a suspect problem, those with most agreement first."""
        rows = []
        for name, problem in self._problems.items():
            agreed, count = max(problem.values.values(), key=lambda value: value[1], default=("", 0))
            if problem.judged >= LEAST and 2 * count > problem.judged:
                rows.append(
                    {
                        "problem_id": name,
                        "where": problem.where,
                        "verifier": problem.verifier,
                        "answer": problem.answer,
                        "agreed": agreed,
                        "count": count,
                        "n": problem.judged,
                        "share": count / problem.judged,
                        "accuracy": problem.correct / problem.judged,
                    }
                )
        return sorted(rows, key=lambda row: (-row["share"], -row["count"]))


def same(extracted: str) -> Hashable:
    """What two extracted answers have in common when they are the same: a number, or a text without its layout."""
    number = only_number(extracted)
    return _LAYOUT.sub("", extracted).casefold() if number is None else number.value
