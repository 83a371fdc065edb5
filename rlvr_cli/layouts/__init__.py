"""Layouts of other projects' problem sets, one file each: a function from a row, as it was read, to our problem.

Each takes the row and the verifier that the user asked for, None where the layout should choose, and returns a checked
problem. It raises RecordError naming the row, the field and the way out. Columns that a layout does not use pass
through.
"""

from collections.abc import Callable

from rlvr_cli.layouts import gsm8k, math, trl, verl
from rlvr_cli.records import Record

LAYOUTS: dict[str, Callable[[Record, str | None], Record]] = {
    "gsm8k": gsm8k.problem,
    "math": math.problem,
    "verl": verl.problem,
    "trl": trl.problem,
}
BARE = ("gsm8k", "math")  # bare questions: the others hold prompts, with their instructions in them


def to_problem(
    row: Record,
    layout: str,
    *,
    verifier: str | None = None,
    source: str | None = None,
    instruction: str | None = None,
) -> Record:
    """The problem that a row of this layout stands for; an instruction follows a bare question after one space."""
    problem = LAYOUTS[layout](row, verifier)
    if source is not None:
        problem = problem.extended(source=source)
    if instruction:
        assert layout in BARE, "prompts are never changed"
        [turn] = problem["messages"]
        problem = problem.extended(messages=[{**turn, "content": f"{turn['content']} {instruction}"}])
    return problem
