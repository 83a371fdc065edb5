"""Recursive synthesis: out of problems without a signal grow problems with one, and go on from what was grown."""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_problem, derived_seed, problem_id
from rlvr_cli.selection.history import Last, Outcome, check_stats, latest
from rlvr_cli.synthesis import lineage
from rlvr_cli.synthesis.chains import OPERATORS, program
from rlvr_cli.synthesis.gates import Gates
from rlvr_cli.tiny.chains import Chain, render_derivation, solve

KINDS: dict[Outcome, str] = {"too_hard": "easier", "too_easy": "harder", "in_band": "sibling"}  # what each one gets
LEFT_OUT = ("unmeasured", "no_program", "max_generation", "not_asked", "exhausted")
MEASURED = 2  # samples; one alone is always all wrong or all right
DRAWS = 16  # of one operator for one child, before the next operator has its turn


@dataclass(frozen=True)
class Plan:
    """What to make. `operators`: names in OPERATORS; `count`: children in all, 0 for no limit."""

    operators: tuple[str, ...] = tuple(OPERATORS)
    children: int = 2  # a parent
    count: int = 0
    max_generation: int = 4
    seed: int = 0


@dataclass
class Report:
    """What was seen and done: problems by outcome, those that get no child by reason, children, refusals, the account.

    `refused` counts different candidates: a parent's candidate that is drawn again for the same child is not counted.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    account: lineage.Account = field(default_factory=lineage.Account)


@dataclass(eq=False)
class _Parent:
    record: Record
    chain: Chain
    outcome: Outcome
    step: int  # the policy's, at the last measurement
    children: int  # so far, those of earlier runs included
    spent: bool = False  # the last call for a child gave none


def check_measured(record: Record) -> None:
    """A row of statistics with the columns of its problem."""
    check_stats(record)
    check_problem(record)
    if record.get("generation", 0) < 0:
        raise RecordError(f"{record.where}: generation is {record['generation']}, expected 0 or more")


def synthesize(
    rows: Iterable[Record],
    plan: Plan,
    gates: Gates,
    known: Iterable[Record] = (),
    avoid: Iterable[Record] = (),
    report: Report | None = None,
) -> Iterator[Record]:
    """New problems out of measured ones, with lineage: all problems are held in memory.

    `rows` are statistics; of each problem the last one counts (`selection.history.latest`). A problem that is
    too hard gets easier children, one that is too easy harder ones, one in the band siblings (`Last.outcome`). Children
    that were measured are problems like any other, so that what missed the band is the parent of the next generation,
    up to `plan.max_generation`.

    Each parent has its turn in rounds of one child. Those with the fewest children so far (in `rows` and `known` too)
    come first, ties fall in a derived order. A child's operators take turns as well; each is drawn up to DRAWS times
    until the gates let a candidate pass. The draws are seeded by (seed, problem, policy step, operator, number of the
    problem's children so far, draw): another measurement gives other children, and so does another call that knows of
    the first one's. The order of `rows` matters only where a problem has several at its last step: the later one
    counts. `known` and `avoid` are problems for the gates: no copy of the one, no overlap with the other.
    """
    report = Report() if report is None else report
    measured, last = _measured(rows)
    outcomes = {name: found.outcome for name, found in last.items() if found.outcome and found.n >= MEASURED}
    report.outcomes.update(outcomes.values())
    born: dict[str, set[str]] = {}  # parent -> its children
    for record in itertools.chain(measured.values(), known):
        gates.know(record)
        if "parent_id" in record:
            born.setdefault(record["parent_id"], set()).add(problem_id(record))
        report.account.add(record, outcomes.get(problem_id(record)))
    for record in avoid:
        gates.avoid(record)
    parents = [
        _Parent(measured[name], steps, outcomes[name], last[name].step, len(born.get(name, ())))
        for name, steps in _programs(measured, outcomes, plan, report)
    ]
    partners = [parent for parent in parents if parent.outcome == "too_easy"]
    for turn in range(plan.children):
        parents = sorted((parent for parent in parents if not parent.spent), key=lambda parent: parent.children)
        for parent in parents:
            if plan.count and report.operators.total() == plan.count:
                return
            made = _child(parent, partners, plan, gates, report)
            if made is None:
                parent.spent = True
                if not turn:
                    report.left_out["exhausted"] += 1
                continue
            parent.children += 1
            gates.know(made)
            report.operators[made["operator"]] += 1
            report.account.add(made, new=True)
            yield made


def _measured(rows: Iterable[Record]) -> tuple[dict[str, Record], dict[str, Last]]:
    """The problems, as their first rows have them, and the last row of each."""
    problems: dict[str, Record] = {}

    def passing() -> Iterator[Record]:
        for row in rows:
            problems.setdefault(row["problem_id"], row)
            yield row

    last = latest(passing())
    return problems, last


def _programs(
    measured: dict[str, Record], outcomes: dict[str, Outcome], plan: Plan, report: Report
) -> Iterator[tuple[str, Chain]]:
    """The problems that may get children, with their programs, in an order derived from the seed."""
    asked = {OPERATORS[name].kind for name in plan.operators}
    for name in sorted(measured, key=lambda name: (derived_seed("synthesize", plan.seed, "turn", name), name)):
        found = program(measured[name])
        if name not in outcomes:
            report.left_out["unmeasured"] += 1
        elif KINDS[outcomes[name]] not in asked:
            report.left_out["not_asked"] += 1
        elif found is None:
            report.left_out["no_program"] += 1
        elif lineage.generation(measured[name]) >= plan.max_generation:
            report.left_out["max_generation"] += 1
        else:
            yield name, found


def _child(parent: _Parent, partners: list[_Parent], plan: Plan, gates: Gates, report: Report) -> Record | None:
    """The parent's next child, the first candidate that passes the gates; None when no draw gives one."""
    name = problem_id(parent.record)
    operators = [operator for operator in plan.operators if OPERATORS[operator].kind == KINDS[parent.outcome]]
    random.Random(derived_seed("synthesize", plan.seed, "operators", name, parent.step)).shuffle(operators)
    refused: set[str] = set()
    for place in range(len(operators)):
        operator = operators[(parent.children + place) % len(operators)]
        for draw in range(DRAWS):
            purpose = "synthesize", plan.seed, name, parent.step, operator, parent.children, draw
            rng = random.Random(derived_seed(*purpose))
            candidate, solution = _candidate(parent, operator, partners, rng)
            if candidate is None or problem_id(candidate) in refused:
                continue
            reason = gates.refusal(candidate, solution)
            if reason is None:
                return candidate
            refused.add(problem_id(candidate))
            report.refused[reason] += 1
    return None


def _candidate(
    parent: _Parent, operator: str, partners: list[_Parent], rng: random.Random
) -> tuple[Record | None, str]:
    """One draw of an operator: the problem and its derivation; None where the draw gives none."""
    found = OPERATORS[operator]
    partner = rng.choice(partners) if found.composes else None
    if partner is not None and not _may_follow(partner, parent):
        return None, ""
    made = found.draw(parent.chain, partner.chain if partner else None, rng)
    if made is None:
        return None, ""
    more = {"partner_id": problem_id(partner.record)} if partner else {}
    return lineage.child(parent.record, made, operator, **more), " ".join(render_derivation(made, solve(made)))


def _may_follow(partner: _Parent, parent: _Parent) -> bool:
    """Whether a problem can be the second part of a composition: another one, of no later generation."""
    later = lineage.generation(partner.record) > lineage.generation(parent.record)
    return partner is not parent and not later
