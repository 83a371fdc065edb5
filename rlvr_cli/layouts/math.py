r"""MATH (Hendrycks et al., 2021) as it is published: `problem`, `solution` with its `\boxed{...}`, `level`, `type`.

MATH-500 and sets like it have `answer` as well, and `subject` and `unique_id`.
"""

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts import rows
from rlvr_cli.records import Record

_LAYOUT = "a row of MATH has problem, and solution or answer"


def problem(row: Record, verifier: str | None = None) -> Record:
    """The problem as one user turn; the answer is `answer`, else what the solution has in its box."""
    question = rows.text(row, "problem", _LAYOUT)
    if "answer" in row:
        answer = rows.gold(row, "answer", row["answer"])
    elif "solution" in row:
        answer = rows.boxed(row, "solution", rows.text(row, "solution", _LAYOUT))
    else:
        raise RecordError(f"{row.where}: solution is missing; {_LAYOUT}")
    columns = {
        "messages": rows.user_turn(question),
        "answer": answer,
        "verifier": verifier or row.get("verifier", "math"),
        "source": row.get("source", "math"),
    }
    return rows.problem(row, columns, used=("problem",))
