"""Operators of the embedded domain: a program makes the child of a chain (tiny/chains.py), so its answer is exact.

A step is as hard as its class: HARD before FAIR before EASY. The hardest steps of a chain are those of the hardest
class that it has. `easier` operators lower (HARD steps, FAIR steps, all steps), compared in this order, `harder` ones
raise it, `sibling` ones keep it.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from rlvr_cli.records import Record
from rlvr_cli.tiny.chains import EASY, FAIR, HARD, LABELS, Chain, Step, parse_prompt

VERIFIERS = ("chain", "chain-answer")
CLASSES = (EASY, FAIR, HARD)

# (chain, another chain to go on with, random numbers) -> the child; None where this draw gives none
Draw = Callable[[Chain, Chain | None, random.Random], Chain | None]


@dataclass(frozen=True)
class Operator:
    """One way to make a child. `composes`: it needs a second parent."""

    kind: str  # easier, harder or sibling
    draw: Draw
    composes: bool = False


def program(record: Record) -> Chain | None:
    """The chain behind a problem of the embedded domain, read where its verifier reads it; None for any other."""
    if record.get("verifier") not in VERIFIERS:
        return None
    try:
        return parse_prompt(chain_text(record))
    except ValueError:
        return None


def chain_text(record: Record) -> str:
    """The prompt, or the last turn of the user."""
    turns = [turn["content"] for turn in record.get("messages", []) if turn["role"] == "user"]
    return str(record.get("prompt") or (turns[-1] if turns else ""))


def drop_step(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """Without one of the hardest steps."""
    return _without(chain, rng, 1)


def drop_half(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """Without half of the hardest steps (rounded up), for a chain with three or more: far out of reach, a long way."""
    count = len(_hardest(chain))
    return _without(chain, rng, (count + 1) // 2) if count >= 3 else None


def ease_step(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """One of the hardest steps becomes one of an easier class."""
    level = _level(chain)
    if level < 1:
        return None
    steps = list(chain.steps)
    steps[rng.choice(_hardest(chain))] = _draw_step(rng.choice(CLASSES[:level]), rng)
    return Chain(chain.start, tuple(steps))


def cut(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """A prefix that ends before the last of the hardest steps: its derivation is a part of the parent's.

    With the first of them in it if there are two: the part that the policy can do already would teach it nothing.
    """
    hardest = _hardest(chain)
    if not hardest or not hardest[-1]:
        return None
    least = hardest[0] + 1 if len(hardest) > 1 else 1
    return Chain(chain.start, chain.steps[: rng.randint(least, hardest[-1])])


def add_step(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """One more FAIR or HARD step somewhere."""
    if len(chain.steps) == len(LABELS):
        return None
    place = rng.randint(0, len(chain.steps))
    step = _draw_step(rng.choice((FAIR, HARD)), rng)
    return Chain(chain.start, (*chain.steps[:place], step, *chain.steps[place:]))


def compose(chain: Chain, other: Chain | None, rng: random.Random) -> Chain | None:
    """The steps of two parents in a row, from the start of the first."""
    if other is None or not other.steps or len(chain.steps) + len(other.steps) > len(LABELS):
        return None
    return Chain(chain.start, chain.steps + other.steps)


def renumber(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """The same operations in the same order, on other numbers."""
    return Chain(rng.randint(0, 99), tuple(_numbered(step.op, rng) for step in chain.steps))


def reorder(chain: Chain, _: Chain | None, rng: random.Random) -> Chain | None:
    """The same steps in another order."""
    steps = tuple(rng.sample(chain.steps, len(chain.steps)))
    return None if steps == chain.steps else Chain(chain.start, steps)


OPERATORS: dict[str, Operator] = {
    "drop-step": Operator("easier", drop_step),
    "drop-half": Operator("easier", drop_half),
    "ease-step": Operator("easier", ease_step),
    "cut": Operator("easier", cut),
    "add-step": Operator("harder", add_step),
    "compose": Operator("harder", compose, composes=True),
    "renumber": Operator("sibling", renumber),
    "reorder": Operator("sibling", reorder),
}


def _level(chain: Chain) -> int:
    """The hardest class in the chain, as a place in CLASSES; -1 for a chain without steps."""
    return max((_class(step) for step in chain.steps), default=-1)


def _hardest(chain: Chain) -> list[int]:
    """The places of the hardest steps."""
    level = _level(chain)
    return [place for place, step in enumerate(chain.steps) if _class(step) == level]


def _class(step: Step) -> int:
    return next(level for level, ops in enumerate(CLASSES) if step.op in ops)


def _without(chain: Chain, rng: random.Random, count: int) -> Chain | None:
    """The chain without `count` of its hardest steps; None where that would leave no step."""
    if not chain.steps or count >= len(chain.steps):
        return None
    dropped = set(rng.sample(_hardest(chain), count))
    return Chain(chain.start, tuple(step for place, step in enumerate(chain.steps) if place not in dropped))


def _draw_step(ops: tuple[str, ...], rng: random.Random) -> Step:
    return _numbered(rng.choice(ops), rng)


def _numbered(op: str, rng: random.Random) -> Step:
    return Step(op, rng.randint(1, 9) if op in EASY else 0)
