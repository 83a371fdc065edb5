"""What the layouts share: fields read with errors that name them, answers as text, the problem put together."""

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from rlvr_cli.errors import RecordError, UsageError
from rlvr_cli.records import COLUMNS, Record, check_problem
from rlvr_cli.streams.jsonl import dumps
from rlvr_cli.verifiers import load_check
from rlvr_cli.verifiers.extraction import find

OURS = ("problem_id", "prompt", "messages", "answer", "verifier", "source")  # known columns that a row may hold itself
MEDIA = ("image", "images", "video", "videos", "audio", "audios")


def problem(row: Record, columns: dict[str, Any], used: Collection[str]) -> Record:
    """The problem of these columns, then what else the row holds; those in `used` are left out.

    The row's own `problem_id`, or else a text `unique_id`, becomes the problem's. Raises RecordError for what is no
    problem, for an answer that the verifier cannot compare with, and for a column whose name means something else here.
    """
    unique = row.get("problem_id", row.get("unique_id"))
    if "problem_id" not in row and isinstance(unique, str):
        used = {*used, "unique_id"}
        columns = {"problem_id": unique, **columns}
    rest = {name: value for name, value in row.items() if name not in used and name not in columns}
    for name, value in rest.items():
        if name in MEDIA and value:
            raise RecordError(f"{row.where}: {name} is there, and a policy is asked in text alone; leave such rows out")
        if name in COLUMNS and name not in OURS:
            raise RecordError(f"{row.where}: {name} is a column that rlvr writes itself; rename it or leave it out")
    made = Record({**columns, **rest}, row.where)
    check_problem(made)
    try:
        check = _load_check(made["verifier"])
    except UsageError as unknown:
        raise RecordError(f"{row.where}: verifier: {unknown}") from unknown
    check(made)
    return made


@cache
def _load_check(verifier: str) -> Callable[[Record], None]:
    if ":" in verifier:
        raise UsageError(f"{verifier}: data cannot name your own code; give --verifier {verifier} to rlvr verify")
    return load_check(verifier)


def text(row: Record, column: str, layout: str) -> str:
    """A field that has to be there, as text that is not blank."""
    value = row.get(column)
    if value is None:
        raise RecordError(f"{row.where}: {column} is missing; {layout}")
    if not isinstance(value, str):
        raise RecordError(f"{row.where}: {column} is {_shown(value)}, expected a string; {layout}")
    if not value.strip():
        raise RecordError(f"{row.where}: {column} is empty; {layout}")
    return value


def user_turn(question: str) -> list[dict[str, str]]:
    """Messages of one turn."""
    return [{"role": "user", "content": question}]


def turns(row: Record, column: str) -> list[Any]:
    """Messages without the fields that are null, which Parquet gives to every turn when one turn has them."""
    value = row[column]
    if not isinstance(value, list) or not all(isinstance(turn, dict) for turn in value):
        raise RecordError(f"{row.where}: {column} is {_shown(value)}, expected a list of turns with role and content")
    if not value:
        raise RecordError(f"{row.where}: {column} is empty; give at least one turn")
    found = [{key: part for key, part in turn.items() if part is not None} for turn in value]
    for turn in found:
        if turn.keys() != {"role", "content"} or not all(isinstance(part, str) for part in turn.values()):
            raise RecordError(
                f"{row.where}: {column} has the turn {_shown(turn)}, expected role and content, both strings"
            )
    return found


def gold(row: Record, field: str, value: Any) -> str:
    """A final answer as text: a number as it is written, a list when its items are one and the same.

    Of a list of several, nobody can say here whether all are required or each is accepted.
    """
    if isinstance(value, list):
        items = list(dict.fromkeys(gold(row, field, item) for item in value))
        if len(items) != 1:
            raise RecordError(
                f"{row.where}: {field} is {_shown(value)}, expected one answer; "
                "keep one of those accepted, or join those required by a comma"
            )
        return items[0]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # an integer, in a column that had holes
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise RecordError(f"{row.where}: {field} is {_shown(value)}, expected a string or a number")
    if not value.strip():
        raise RecordError(f"{row.where}: {field} is empty; leave the row out, nothing can be verified by it")
    return value.strip()


def boxed(row: Record, field: str, solution: str) -> str:
    r"""The content of a worked solution's last `\boxed{...}`, of boxes joined by `and` or a comma all of them."""
    found = find({"completion": solution})
    if found.how != "box" or found.text is None:
        reason = found.reason if found.boxes else "there is none"
        raise RecordError(
            f"{row.where}: {field} states no answer in \\boxed{{...}} ({reason}); put the answer into a column answer"
        )
    if found.hedged:
        raise RecordError(f"{row.where}: {field} ends in {found.reason}; put the one answer into a column answer")
    return found.text


def _shown(value: Any) -> str:
    shown = dumps(value).decode()
    return shown if len(shown) <= 60 else shown[:57] + "..."
