"""The states of a failed rollout, what each is worth, and the draw (Deep Dense Exploration, 2 and 4)."""

import math
import random
import sys
from dataclasses import dataclass

from rlvr_cli.errors import RecordError
from rlvr_cli.exploration.recoverability import Logistic
from rlvr_cli.records import Record

METHODS = ("utility", "random", "depth", "recoverability")


@dataclass(frozen=True)
class State:
    """A segment boundary of a completion: `index` 0 is the root, `prefix_len` the tokens before it."""

    index: int
    prefix_len: int
    depth: float


@dataclass(frozen=True)
class Pivot:
    """A state that may be drawn, with its chance of recovery and its weight in the draw."""

    prefix_len: int
    depth: float
    recoverability: float
    utility: float


@dataclass(frozen=True)
class Worth:
    """What makes a state worth resampling: the method, and what it needs.

    `utility`: U = P(success | x) x^gamma. Ablations: `depth` is x^gamma (P = 1), `recoverability` P(success | x)
    (gamma = 0), `random` 1. With a `score_column` the scores in that column of the record take the place of U.
    """

    method: str = "utility"
    gamma: float = 2.0
    chance: Logistic | None = None  # None: P = 1
    score_column: str | None = None

    def recoverability(self, depth: float) -> float:
        """P(success | x), as fitted, whatever the method."""
        return 1.0 if self.chance is None else self.chance(depth)

    def utility(self, depth: float) -> float:
        """U of a state at this depth, where no column holds it."""
        match self.method:
            case "utility":
                return self.recoverability(depth) * math.pow(depth, self.gamma)
            case "depth":
                return math.pow(depth, self.gamma)
            case "recoverability":
                return self.recoverability(depth)
            case "random":
                return 1.0
        raise ValueError(f"unknown method {self.method!r}, expected one of {', '.join(METHODS)}")


def states(record: Record, ends: list[int]) -> list[State]:
    """The candidate states of a completion whose segments end at `ends` (tokens, the last its length).

    With S segments there are N = S + 1 states, the root and every segment end; state j has depth (j + 1) / N. The last
    is no candidate (nor is the root of an empty completion, which is its last), nor is a state at or after the sampled
    end token, nor one with no room below `max_tokens`. Exclusions do not change N.
    """
    boundaries = [0, *ends]
    limit = record["max_tokens"]
    if record["finish_reason"] == "stop":
        limit = min(limit, boundaries[-1] - 1)  # the end token is the last one
    return [
        State(index, prefix_len, (index + 1) / len(boundaries))
        for index, prefix_len in enumerate(boundaries[:-1])
        if prefix_len < limit
    ]


def candidates(record: Record, ends: list[int], worth: Worth) -> list[Pivot]:
    """The states that may become pivots, shallow to deep: those whose utility is above 0.

    Raises RecordError for a score column that does not fit.
    """
    found = states(record, ends)
    if not found:
        return []  # with nothing to score, such as an empty completion, no scores are asked for
    if worth.score_column is None:
        utilities = [worth.utility(state.depth) for state in found]
    else:
        utilities = _scores(record, ends, found, worth.score_column)
    return [
        Pivot(state.prefix_len, state.depth, worth.recoverability(state.depth), utility)
        for state, utility in zip(found, utilities, strict=True)
        if utility > 0
    ]


def _scores(record: Record, ends: list[int], found: list[State], column: str) -> list[float]:
    """The external score of each state; 0 for the root, which no model of steps or tokens has scored.

    The column holds a number for each segment, or one for each completion token: the score of the state right after.
    """
    scores = record.get(column)
    tokens = ends[-1] if ends else 0
    if not isinstance(scores, list) or len(scores) not in (len(ends), tokens):
        what = "missing" if scores is None else f"{len(scores)} numbers" if isinstance(scores, list) else "no list"
        raise RecordError(
            f"{record.where}: {column} is {what}, expected a list with a score for each of {len(ends)} segments or "
            f"each of {tokens} completion tokens; score it again, cut by the same --segments"
        )
    for score in scores:
        if type(score) not in (int, float) or not 0 <= score <= sys.float_info.max:
            raise RecordError(
                f"{record.where}: {column} holds {score!r}, expected numbers from 0 on; shift or exp() them"
            )
    by_segment = len(scores) == len(ends)
    places = [state.index if by_segment else state.prefix_len for state in found]
    return [float(scores[place - 1]) if place else 0.0 for place in places]


def draw(choices: list[Pivot], count: int, seed: int) -> list[Pivot]:
    """Up to `count` of the choices in the order drawn: without replacement, each with probability U / ΣU of those left.

    Every utility is above 0.
    """
    generator = random.Random(seed)
    left = list(choices)
    drawn: list[Pivot] = []
    while left and len(drawn) < count:
        largest = max(pivot.utility for pivot in left)  # scores may be large: their sum stays finite
        [place] = generator.choices(range(len(left)), [pivot.utility / largest for pivot in left])
        drawn.append(left.pop(place))
    return drawn
