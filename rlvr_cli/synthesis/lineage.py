"""Lineage: where a made problem comes from, and how the children of each generation and operator turned out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvr_cli.records import Record, problem_id
from rlvr_cli.selection.history import OUTCOMES, Outcome
from rlvr_cli.tiny.chains import Chain, digits, render_prompt, solve

COLUMNS = ("children", "new", "measured", *OUTCOMES)


def generation(record: Mapping[str, Any]) -> int:
    """0 for a given problem."""
    return int(record.get("generation", 0))


def child(parent: Record, chain: Chain, operator: str, **more: str) -> Record:
    """The problem of a chain that was made out of the parent's, in the parent's form: prompt or messages.

    Of the parent's columns only those that hold for the child are kept: a `kind`, say, would be wrong.
    """
    text = render_prompt(chain)
    content = {"messages": _last_turn(parent["messages"], text)} if "messages" in parent else {"prompt": text}
    columns = {**content, "answer": digits(solve(chain)[-1]), "verifier": parent["verifier"]}
    lineage = {
        **({"source": parent["source"]} if "source" in parent else {}),
        "parent_id": problem_id(parent),
        "root_id": parent.get("root_id", problem_id(parent)),
        "generation": generation(parent) + 1,
        "operator": operator,
    }
    return Record({"problem_id": problem_id(columns), **columns, **lineage, **more}, parent.where)


def _last_turn(messages: Sequence[Mapping[str, str]], text: str) -> list[dict[str, str]]:
    """The turns with the user's last one saying `text`."""
    last = max(place for place, turn in enumerate(messages) if turn["role"] == "user")
    return [{**turn, "content": text} if place == last else dict(turn) for place, turn in enumerate(messages)]


@dataclass
class Account:
    """Counts of children by generation and by operator: how many there are, and how the measured ones turned out."""

    generations: dict[int, Counter[str]] = field(default_factory=dict)
    operators: dict[str, Counter[str]] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def add(self, record: Record, outcome: Outcome | None = None, new: bool = False) -> None:
        """Count a child, once; a problem that was given is none. `outcome` is None for one that was not measured."""
        if not generation(record) or problem_id(record) in self._seen:
            return
        self._seen.add(problem_id(record))
        found = {"children": 1, "new": int(new), "measured": int(outcome is not None)}
        if outcome is not None:
            found[outcome] = 1
        self.generations.setdefault(generation(record), Counter()).update(found)
        self.operators.setdefault(record.get("operator", "unknown"), Counter()).update(found)

    def figures(self) -> dict[str, dict[str, dict[str, int]]]:
        """Plain data for --metrics."""
        return {
            "generations": {str(key): _row(self.generations[key]) for key in sorted(self.generations)},
            "operators": {key: _row(self.operators[key]) for key in sorted(self.operators)},
        }

    def table(self) -> str:
        """The same for people; empty without children."""
        figures = self.figures()
        lines = [
            [title + key, *map(str, row.values())]
            for part, title in (("generations", "generation "), ("operators", ""))
            for key, row in figures[part].items()
        ]
        return _aligned([["", *(name.replace("_", " ") for name in COLUMNS)], *lines]) if lines else ""


def _row(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in COLUMNS}


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns two blanks apart, the first on the left and the figures on the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    )
