"""verl's training files: `data_source`, `prompt` (turns), `reward_model` with its `ground_truth`, `extra_info`."""

from typing import Any

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts import rows
from rlvr_cli.records import Record

# The sources that verl scores by mathematics; those beginning with a prefix as well.
_MATH = {
    "lighteval/MATH",
    "DigitalLearningGmbH/MATH-lighteval",
    "HuggingFaceH4/MATH-500",
    "math",
    "math_dapo",
    "math_dapo_reasoning",
}
_MATH_PREFIXES = ("aime", "numina_")


def problem(row: Record, verifier: str | None = None) -> Record:
    """The prompt as messages and the ground truth as answer; the verifier follows from `data_source`.

    `reward_model` is kept without its ground truth, `ability` and `extra_info` as they are. `extra_info.index` is no
    id: it begins again in each split.
    """
    if "prompt" not in row:
        raise RecordError(f"{row.where}: prompt is missing; a row of verl has data_source, prompt and reward_model")
    source = row.get("data_source")
    columns = {
        "messages": rows.turns(row, "prompt"),
        "answer": rows.gold(row, "reward_model.ground_truth", _ground_truth(row)),
        "verifier": verifier or row.get("verifier") or _verifier_of(row, source),
        "source": source if source is not None else row.get("source"),
        "reward_model": {key: value for key, value in row["reward_model"].items() if key != "ground_truth"},
    }
    given = {name: value for name, value in columns.items() if value is not None and value != {}}
    return rows.problem(row, given, used=("prompt", "data_source", "reward_model"))


def _ground_truth(row: Record) -> Any:
    judged = row.get("reward_model")
    if not isinstance(judged, dict):
        found = "is missing" if judged is None else "is no object"
        raise RecordError(f"{row.where}: reward_model {found}; verl keeps the answer in reward_model.ground_truth")
    if judged.get("ground_truth") is None:
        raise RecordError(f"{row.where}: reward_model.ground_truth is missing; leave out rows that no rule can judge")
    return judged["ground_truth"]


def _verifier_of(row: Record, source: Any) -> str:
    if source == "openai/gsm8k":
        return "gsm8k"
    if isinstance(source, str) and (source in _MATH or source.startswith(_MATH_PREFIXES)):
        return "math"
    found = "is missing" if source is None else f"is {source!r}, for which no verifier is known"
    raise RecordError(f"{row.where}: data_source {found}; name one with --verifier")
