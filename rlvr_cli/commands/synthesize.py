"""`rlvr synthesize`: options in, streams opened, figures out."""

from typing import Annotated

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, counted
from rlvr_cli.errors import UsageError
from rlvr_cli.records import check_problem
from rlvr_cli.stages.synthesize import KINDS, LEFT_OUT, Plan, Report, check_measured
from rlvr_cli.stages.synthesize import synthesize as stage
from rlvr_cli.streams.inputs import read_all
from rlvr_cli.synthesis.chains import OPERATORS
from rlvr_cli.synthesis.gates import REASONS, Gates

TOLD = {
    "unmeasured": "with fewer than two judged samples",
    "no_program": "outside the domains that have operators",
    "max_generation": "of generation --max-generation",
    "not_asked": "of a kind that --operators leaves out",
    "exhausted": "whose every draw was turned away",
}


LISTED = "; ".join(
    f"{kind}: {', '.join(name for name, found in OPERATORS.items() if found.kind == kind)}" for kind in KINDS.values()
)


@with_io(resumable=False)
def synthesize(
    io: IO,
    known: Annotated[
        list[str] | None,
        opt("--known", help="problems that no child may copy: the pool, earlier children; may be repeated"),
    ] = None,
    avoid: Annotated[
        list[str] | None,
        opt("--avoid", help="the evaluation set, which no child may overlap; may be repeated"),
    ] = None,
    operators: Annotated[
        str,
        opt("--operators", help=f"which to use, by kind or by name, with commas between; {LISTED}"),
    ] = "easier,harder,sibling",
    children: Annotated[int, opt("--children", help="children a problem, in this run")] = 2,
    count: Annotated[int, opt("--count", help="children in all; 0 is no limit")] = 0,
    max_generation: Annotated[
        int, opt("--max-generation", help="the last generation; given problems are generation 0")
    ] = 4,
    near: Annotated[
        float,
        opt("--near", help="with the answer of a known problem, and 3-word shingles as similar as this: a copy"),
    ] = 0.8,
    overlap: Annotated[
        float,
        opt("--overlap", help="this share of 8-grams in common with a problem of --avoid is too much; 0: a single one"),
    ] = 0.5,
    max_words: Annotated[int, opt("--max-words", help="longest prompt, in words")] = 512,
    seed: Annotated[int, opt("--seed", help="the run's seed")] = 0,
) -> None:
    """Make problems that the policy can learn from out of those it cannot.

    Statistics in, as rlvr bucketize writes them; new problems out, with exact answers and their lineage. Problems that
    were all wrong get easier children, all right harder ones, the others siblings. Measured children that missed the
    band get children of their own. Holds the problems in memory.

    The last gate is measured: rlvr select CHILDREN --stats STATS --mix frontier=1 --batch 100000 keeps the children
    that the policy's own rollouts put in the band, and counts the others.
    """
    plan = Plan(_operators(operators), children, count, max_generation, seed)
    _check(plan, near, overlap, max_words)
    with Run("synthesize", io, resumable=False, reads={"--known": known, "--avoid": avoid}) as run:
        run.total = count or None
        report = Report()
        others = read_all(known, check_problem) if known else ()
        evaluation = read_all(avoid, check_problem) if avoid else ()
        gates = Gates(near, overlap, max_words)
        run.write(stage(run.read(check_measured), plan, gates, others, evaluation, report))
        run.figures(
            problems=report.outcomes.total(),
            **{name: report.outcomes[name] for name in KINDS},
            left_out={name: report.left_out[name] for name in LEFT_OUT},
            children=report.operators.total(),
            children_by_operator={name: report.operators[name] for name in OPERATORS},
            refused={name: report.refused[name] for name in REASONS},
            **report.account.figures(),
        )
        _tell(run, report)


def _tell(run: Run, report: Report) -> None:
    outcomes = ", ".join(f"{report.outcomes[name]} {name.replace('_', ' ')}" for name in KINDS)
    run.say(f"{counted(report.outcomes.total(), 'measured problem')}: {outcomes}")
    for name in LEFT_OUT:
        if report.left_out[name]:
            run.say(f"{counted(report.left_out[name], 'problem')} {TOLD[name]}: no child")
    if report.refused:
        reasons = ", ".join(
            f"{report.refused[name]} {name.replace('_', ' ')}" for name in REASONS if report.refused[name]
        )
        run.say(f"{counted(report.refused.total(), 'candidate')} turned away: {reasons}")
    made = ", ".join(f"{report.operators[name]} {name}" for name in OPERATORS if report.operators[name])
    table = report.account.table()
    run.say(f"{report.operators.total()} children" + (f": {made}" if made else "") + (f"\n\n{table}" if table else ""))


def _operators(text: str) -> tuple[str, ...]:
    """The operators that a list of kinds and names means. Raises UsageError."""
    asked = {part.strip() for part in text.split(",")}
    unknown = sorted(asked - set(KINDS.values()) - set(OPERATORS))
    if unknown:
        raise UsageError(f"--operators: no {unknown[0]!r}; there are {LISTED}")
    return tuple(name for name, found in OPERATORS.items() if name in asked or found.kind in asked)


def _check(plan: Plan, near: float, overlap: float, max_words: int) -> None:
    for flag, value, least in (
        ("--children", plan.children, 1),
        ("--count", plan.count, 0),
        ("--max-generation", plan.max_generation, 1),
        ("--max-words", max_words, 1),
    ):
        if value < least:
            raise UsageError(f"{flag} is {value}, expected at least {least}")
    if not (0 < near <= 1 and 0 <= overlap <= 1):
        raise UsageError(f"--near is {near} and --overlap is {overlap}, expected 0 < --near <= 1, 0 <= --overlap <= 1")
