"""The methods of selection: each fills the slots of its classes and says why it took a problem.

A method gets the sorted problem_ids of each class, the shares of the classes, the size of the batch and the evidence,
and gives (problem_id, reason) by class. Without a mix there is one class, and its share is 1.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from rlvr_cli.records import derived_seed
from rlvr_cli.selection.history import History, Last
from rlvr_cli.selection.mix import Shares, apportion, fill

Classes = Mapping[str, list[str]]
Chosen = list[tuple[str, str]]


@dataclass(frozen=True)
class Tuning:
    """The numbers that methods depend on.

    half_life: policy steps after which a count weighs half (`thompson`).
    unsolved_cap: largest share of unsolved problems in a batch (`never-give-up`).
    rest: steps from the try that a problem was solved at every time to the next one (`never-give-up`).
    mastery: pass rate of a mastered child (all but `uniform`).
    """

    half_life: float = 8.0
    unsolved_cap: float = 0.25
    rest: int = 10
    mastery: float = 0.75


DEFAULT = Tuning()


@dataclass(frozen=True)
class Evidence:
    """What a method knows: the step that the batch is for, the run's seed, and each problem's past.

    `mastered` are the problems to try again because their children are mastered, with the number of those.
    """

    step: int
    seed: int
    histories: Mapping[str, History] = field(default_factory=dict)
    mastered: Mapping[str, int] = field(default_factory=dict)
    tuning: Tuning = DEFAULT

    def last(self, name: str) -> Last | None:
        """The problem's last row of statistics; None for one that was never tried."""
        history = self.histories.get(name)
        return history.last if history else None


def uniform(classes: Classes, shares: Shares, batch: int, evidence: Evidence) -> dict[str, Chosen]:
    """Without replacement, an epoch at a time, see `uniform_batch`; each class has epochs of its own.

    Epochs are whole as long as the problems, their classes, the shares and the batch stay the same.
    """
    slots = apportion(batch, shares, {name: len(members) for name, members in classes.items()})
    return {
        name: uniform_batch(classes[name], evidence.step, count, evidence.seed) if count else []
        for name, count in slots.items()
    }


def frontier(classes: Classes, shares: Shares, batch: int, evidence: Evidence) -> dict[str, Chosen]:
    """First the problems whose last group was mixed, then those whose children are mastered, then the others.

    Within each, those tried least recently come first, the untried before all, and ties fall in an order derived from
    (seed, step).
    """
    queues = {name: _by_urgency(members, evidence, "frontier") for name, members in classes.items()}
    return _with_reasons(fill(batch, shares, queues), lambda name: _why(name, evidence))


def thompson(classes: Classes, shares: Shares, batch: int, evidence: Evidence) -> dict[str, Chosen]:
    """Thompson sampling: p is drawn from each problem's Beta posterior, and the largest S_K(p) are taken.

    S_K(p) = 1 - p^K - (1-p)^K increases with min(p, 1-p), strictly, for every K from 2 on: the order is the same
    whatever the size of the groups, and min(p, 1-p) tells it without the rounding that makes S_K 1 for a large K.

    The prior is Beta(1, 1) and is not fitted to the statistics: those are of what selection chose, and with all of them
    unsolved the best fit says that nothing can be solved, so that nothing untried would be tried again. The counts of
    a problem whose children are mastered are forgotten. Each draw has a seed of its own, of (seed, step, problem_id).
    """
    drawn: dict[str, tuple[float, float, float]] = {}
    for name in (name for members in classes.values() for name in members):
        a, b = posterior(name, evidence)
        rng = random.Random(derived_seed("select", evidence.seed, "thompson", evidence.step, name))
        drawn[name] = (rng.betavariate(a, b), a, b)

    def signal(name: str) -> float:
        p = drawn[name][0]
        return min(p, 1 - p)

    def why(name: str) -> str:
        p, a, b = drawn[name]
        return f"{_why(name, evidence)}; drew {p:.3f} from Beta({a:.3g}, {b:.3g})"

    queues = {name: sorted(members, key=signal, reverse=True) for name, members in classes.items()}
    return _with_reasons(fill(batch, shares, queues), why)


def posterior(name: str, evidence: Evidence) -> tuple[float, float]:
    """(a, b) of the Beta posterior of a problem's success chance at this step."""
    history = evidence.histories.get(name)
    if history is None or name in evidence.mastered:
        return 1.0, 1.0
    right, wrong = history.decayed(evidence.step, evidence.tuning.half_life)
    return 1 + right, 1 + wrong


def never_give_up(classes: Classes, shares: Shares, batch: int, evidence: Evidence) -> dict[str, Chosen]:
    """Problems that were tried and never solved come back first, up to `unsolved_cap` of the batch.

    Among them those whose children are mastered are first, then the least recently tried. The cap is whole slots,
    rounded down, dealt by their shares to the classes that hold unsolved problems; a batch that only more unsolved
    problems could fill stays short. The others follow as in `frontier`. Problems solved every time at their last try
    rest until step last try + `rest`: one is taken sooner only where the batch cannot be filled otherwise.
    """

    def unsolved(name: str) -> bool:
        history = evidence.histories.get(name)
        return history is not None and not history.solved and not history.last.mixed and history.tried() > 0

    def rests(name: str) -> bool:
        last = evidence.last(name)
        return last is not None and last.outcome == "too_easy" and evidence.step < last.step + evidence.tuning.rest

    def why(name: str) -> str:
        if unsolved(name):
            tries = f"unsolved {_when(evidence.last(name))} (0/{evidence.histories[name].tried()} in all)"
            return f"{_mastered(name, evidence)}, {tries}" if name in evidence.mastered else tries
        resting = "resting, but nothing else is left; " if rests(name) else ""
        return resting + _why(name, evidence)

    cap = math.floor(Fraction(repr(evidence.tuning.unsolved_cap)) * batch)
    allowed = apportion(cap, shares, {name: sum(map(unsolved, members)) for name, members in classes.items()})
    queues: dict[str, list[str]] = {}
    spare: dict[str, list[str]] = {}
    for name, members in classes.items():
        order = _by_urgency(members, evidence, "never-give-up")
        returning = [problem for problem in order if unsolved(problem)][: allowed[name]]
        queues[name] = returning + [problem for problem in order if not unsolved(problem) and not rests(problem)]
        spare[name] = [problem for problem in order if rests(problem)]
    return _with_reasons(fill(batch, shares, queues, spare), why)


METHODS: dict[str, Callable[[Classes, Shares, int, Evidence], dict[str, Chosen]]] = {
    "uniform": uniform,
    "frontier": frontier,
    "thompson": thompson,
    "never-give-up": never_give_up,
}


def uniform_batch(names: Sequence[str], step: int, batch: int, seed: int) -> Chosen:
    """The (problem_id, reason) of one step, without replacement, an epoch at a time; 1 <= batch <= len(names).

    A batch that crosses the border of two epochs must not hold a problem twice. So the next epoch begins with the
    first problems of its permutation that the batch does not hold yet; the ones passed over come right after them, in
    their order. Every epoch stays a permutation. Each depends in this way on the end of the one before, so they
    are made in turn, from the last border that fell between two batches.
    """
    size = len(names)
    first, last = step * batch // size, ((step + 1) * batch - 1) // size
    aligned = batch // math.gcd(size, batch)  # epochs from one border between batches to the next
    orders: dict[int, list[str]] = {}
    for epoch in range(first - first % aligned, last + 1):
        order = list(names)
        random.Random(derived_seed("select", seed, "epoch", epoch)).shuffle(order)
        started = epoch * size % batch  # how much of the batch in progress the last epoch gave
        if started:
            order = _apart(order, set(orders[epoch - 1][-started:]), batch - started)
        orders = {key: orders[key] for key in orders if key == epoch - 1} | {epoch: order}
    places = range(step * batch, (step + 1) * batch)
    return [(orders[place // size][place % size], f"epoch {place // size}") for place in places]


def _apart(order: list[str], held: set[str], count: int) -> list[str]:
    """The order with `count` problems that are not held drawn to the front."""
    front = [name for name in order if name not in held][:count]
    taken = set(front)
    return front + [name for name in order if name not in taken]


def _by_urgency(names: Sequence[str], evidence: Evidence, purpose: str) -> list[str]:
    order = list(names)
    random.Random(derived_seed("select", evidence.seed, purpose, evidence.step)).shuffle(order)

    def urgency(name: str) -> tuple[int, float]:
        last = evidence.last(name)
        if last is None:
            return 2, -math.inf
        return 0 if last.mixed else 1 if name in evidence.mastered else 2, last.step

    return sorted(order, key=urgency)


def _with_reasons(taken: Mapping[str, list[str]], why: Callable[[str], str]) -> dict[str, Chosen]:
    return {name: [(problem, why(problem)) for problem in problems] for name, problems in taken.items()}


def _why(name: str, evidence: Evidence) -> str:
    last = evidence.last(name)
    if last is None:
        return "untried"
    if last.mixed:
        return f"last group mixed {_when(last)} ({last.n_correct}/{last.n})"
    tried = f"last tried {_when(last)}"
    return f"{_mastered(name, evidence)}, {tried}" if name in evidence.mastered else tried


def _mastered(name: str, evidence: Evidence) -> str:
    return f"children mastered (all {evidence.mastered[name]} measured)"


def _when(last: Last | None) -> str:
    return f"at step {last.step}" if last is not None and last.step >= 0 else "at an unknown step"
