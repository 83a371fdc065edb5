"""Chains of arithmetic on two-digit numbers: the language that the embedded policy speaks.

A problem and its derivation, one word a token:

    Start 2 9 . A: - 4 . B: + 6 . C: double . =>
    A: - 4 on 2 9 = 2 5 . B: + 6 on 2 5 = 3 1 . C: double on 3 1 = 6 2 . Answer 6 2

A line repeats its step word for word before it names the value, so that a model finds the step by its label and copies.
Values are 0..99 and every operation wraps there (mod 100), so each chain has exactly one derivation and one answer.
"""

from dataclasses import dataclass

LABELS = tuple(f"{letter}:" for letter in "ABCDEFGHIJKLMNOPQRST")
EASY = ("+", "-")  # the embedded policy holds these
FAIR = ("double",)
HARD = ("flip", "nines")  # swap the digits; 99 - value
WORDS = ("Start", "Answer", ".", "=", "=>", "on", *EASY, *FAIR, *HARD, *LABELS, *"0123456789")


@dataclass(frozen=True)
class Step:
    """One operation; `operand` is 1..9 for `+` and `-`, 0 for the operations that take none."""

    op: str
    operand: int = 0


@dataclass(frozen=True)
class Chain:
    """A start value and the steps that are applied to it in order."""

    start: int
    steps: tuple[Step, ...]


def apply(step: Step, value: int) -> int:
    """The value after one step."""
    match step.op:
        case "+":
            return (value + step.operand) % 100
        case "-":
            return (value - step.operand) % 100
        case "double":
            return 2 * value % 100
        case "flip":
            return value % 10 * 10 + value // 10
        case "nines":
            return 99 - value
    raise ValueError(f"unknown operation {step.op!r}")


def solve(chain: Chain) -> list[int]:
    """The value after each step; the last one is the answer (the start value if there are no steps)."""
    values = [chain.start]
    for step in chain.steps:
        values.append(apply(step, values[-1]))
    return values[1:] or values


def digits(value: int) -> str:
    """A value as the policy writes it: 7 is `0 7`."""
    return f"{value // 10} {value % 10}"


def render_prompt(chain: Chain) -> str:
    """The problem's text."""
    lines = [f"Start {digits(chain.start)} ."]
    for label, step in zip(LABELS, chain.steps, strict=False):
        lines.append(f"{label} {_words(step)} .")
    return " ".join([*lines, "=>"])


def render_derivation(chain: Chain, values: list[int]) -> list[str]:
    """The lines that claim `values` as the results of the steps, and the line of the answer."""
    lines = []
    value = chain.start
    for label, step, result in zip(LABELS, chain.steps, values, strict=False):
        lines.append(f"{label} {_words(step)} on {digits(value)} = {digits(result)} .")
        value = result
    return [*lines, f"Answer {digits(value)}"]


def parse_prompt(text: str) -> Chain:
    """The chain behind a problem's text. Raises ValueError, saying what does not fit."""
    body, arrow, rest = text.partition("=>")
    if not arrow or rest.strip():
        raise ValueError("a chain ends with '=>'")
    head, *parts = [part.split() for part in body.split(" . ") if part.strip()] or [[]]
    if len(head) != 3 or head[0] != "Start":
        raise ValueError("a chain begins with 'Start' and two digits")
    steps = []
    for label, words in zip(LABELS, parts, strict=False):
        if words[0] != label:
            raise ValueError(f"expected step {label} and found {' '.join(words)!r}")
        match words[1:]:
            case [("+" | "-") as op, digit] if digit in tuple("123456789"):
                steps.append(Step(op, int(digit)))
            case [("double" | "flip" | "nines") as op]:
                steps.append(Step(op))
            case _:
                raise ValueError(f"step {label} is {' '.join(words[1:])!r}, which is no operation")
    if len(parts) > len(LABELS):
        raise ValueError(f"{len(parts)} steps, at most {len(LABELS)} have labels")
    return Chain(_value(head[1:]), tuple(steps))


def _words(step: Step) -> str:
    return f"{step.op} {step.operand}" if step.operand else step.op


def _value(words: list[str]) -> int:
    if any(len(word) != 1 or word not in "0123456789" for word in words):
        raise ValueError(f"{' '.join(words)!r} are not two digits")
    return int("".join(words))
