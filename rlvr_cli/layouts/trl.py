"""TRL's prompt sets: `prompt`, a text or turns, with the column that a reward function compares with."""

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts import rows
from rlvr_cli.records import Record

# Of these the first that is there; TRL's own accuracy_reward reads `solution`.
_ANSWERS = ("answer", "ground_truth", "solution")
_NO_PROMPTS = {
    "chosen": "a preference",
    "rejected": "a preference",
    "completion": "a completion to imitate",
    "completions": "completions with labels",
}


def problem(row: Record, verifier: str | None = None) -> Record:
    r"""A text prompt stays `prompt`, turns become `messages`, system turns included.

    The answer is that of the first of `answer`, `ground_truth`, `solution`: its last `\boxed{...}`, else what follows
    `####`, else all of it. A worked answer is kept, as `solution`. `messages` beside a prompt, which TRL does not read,
    is left out.
    """
    for name, what in _NO_PROMPTS.items():
        if name in row:
            raise RecordError(f"{row.where}: {name} is there: the row holds {what}; give rows of prompt and answer")
    if "prompt" not in row:
        conversation = "messages is a conversation to imitate" if "messages" in row else "TRL's prompt sets have it"
        raise RecordError(f"{row.where}: prompt is missing; {conversation}")
    column = next((name for name in _ANSWERS if name in row), None)
    if column is None:
        raise RecordError(f"{row.where}: answer is missing, and so are ground_truth and solution; nothing to verify by")
    whole = rows.gold(row, column, row[column])
    answer = _final(row, column, whole)
    columns = {"answer": answer, "verifier": verifier or row.get("verifier", "math")}
    if isinstance(row["prompt"], str):
        columns = {"prompt": rows.text(row, "prompt", "a prompt needs text"), **columns}
    else:
        columns = {"messages": rows.turns(row, "prompt"), **columns}
    if answer != whole and "solution" not in row:
        columns["solution"] = whole
    used = ("prompt", "messages", "ground_truth") if column == "ground_truth" else ("prompt", "messages")
    return rows.problem(row, columns, used)


def _final(row: Record, column: str, whole: str) -> str:
    if "\\boxed" in whole or "\\fbox" in whole:
        return rows.boxed(row, column, whole)
    _, mark, after = whole.rpartition("####")
    return rows.gold(row, column, after) if mark else whole
