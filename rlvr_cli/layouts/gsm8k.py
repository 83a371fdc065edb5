"""GSM8K as it is published: `question`, and `answer`, a worked solution that ends in `#### 18`."""

import re

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts import rows
from rlvr_cli.records import Record

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_LAYOUT = "a row of GSM8K has question and answer"


def problem(row: Record, verifier: str | None = None) -> Record:
    """The question as one user turn, the number after the last `####`; the worked solution is kept as `solution`.

    The question is left bare: verifier gsm8k takes a number in a box or after `####`, else the last one. Thousands
    separators go, so that `1,200` and `1200` are one answer. A row with another `solution` of its own is refused:
    one of the two would be lost.
    """
    question = rows.text(row, "question", _LAYOUT)
    solution = rows.text(row, "answer", _LAYOUT)
    _, mark, number = solution.rpartition("####")
    if not mark:
        raise RecordError(f"{row.where}: answer has no ####; in GSM8K a worked solution ends in `#### number`")
    if row.get("solution", solution) != solution:
        raise RecordError(f"{row.where}: solution is there, and answer becomes it; rename it or leave it out")
    columns = {
        "messages": rows.user_turn(question),
        "answer": _THOUSANDS.sub("", number.strip()),
        "verifier": verifier or row.get("verifier", "gsm8k"),
        "source": row.get("source", "gsm8k"),
        "solution": solution,
    }
    return rows.problem(row, columns, used=("question",))
