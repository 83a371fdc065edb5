"""The scorers of the library reasoning-gym, one for each of its tasks: pip install "rlvr[reasoning-gym]".

A record is an entry of the library: `answer` (may be missing: some tasks have many right answers and name none) and
`metadata`, an object or its JSON text, whose `source_dataset` names the task. The scorer gets the box, the `<answer>`
tag (which answers of several lines need) or the stated answer, else all of the completion after its thinking. Tasks are
scored with the library's default settings.

Scores lie in 0 to 1, and many tasks give a little to any answer that can be read (0.01 to 0.1), or a flat 0.5 to one
that is legal and not right. So an answer is `correct` from a score of MIN_SCORE on, just above one half, and its reward
is the score; the column `min_score` of a record replaces that (1 for right answers only). Below it the answer is
`wrong`, its reward 0 and the score in the detail.

Where a scorer raises, the text is at fault, and wrong, if the scorer takes the record's own answer (an empty one, where
it has none); otherwise it is an `error`. Nine scorers give the policy's text to Python to evaluate: they get readers
that do not (unevaluated.py), and whatever else would be evaluated is stopped and an `error`. Records of
game_of_life_halting are refused: its scorer takes any text for an answer of False.
"""

import copy
import json
import math
from functools import cache
from typing import Any

from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import nothing
from rlvr_cli.verifiers.final import final_answer, shown
from rlvr_cli.verifiers.judgement import Judgement, correct, error, wrong
from rlvr_cli.verifiers.unevaluated import EvaluationError, disarm, unevaluated

MIN_SCORE = 0.51
LONGEST = 100_000  # characters of an answer
_BROKEN = {"game_of_life_halting": "takes any text for an answer of False"}  # scorers that cannot be used
_TUPLES = ("arc_agi", "rearc")  # tasks that compare with tuples, which JSON makes lists


def check(record: Record) -> None:
    """The metadata names a task of the library. Raises RecordError; UserError where the library is missing."""
    check_columns(record)
    metadata = _metadata(record)
    task = metadata.get("source_dataset")
    if not isinstance(task, str) or task not in _tasks():
        raise RecordError(
            f"{record.where}: metadata has source_dataset {shown(str(task))}, expected the name of a reasoning-gym task"
        )
    if task in _BROKEN:
        raise RecordError(f"{record.where}: the scorer of {task} {_BROKEN[task]}; name verifier text for such records")
    least = record.get("min_score", MIN_SCORE)
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 < least <= 1:
        raise RecordError(f"{record.where}: min_score is {least!r}, expected a number above 0, at most 1")


def judge(record: Record) -> Judgement:
    """Score the final answer."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    if not text:
        return nothing(record, "the answer is empty")
    if len(text) > LONGEST:
        return wrong(text[:200], f"the answer has {len(text)} characters", **found.detail)
    task = _metadata(record)["source_dataset"]
    detail = {**found.detail, "task": task}
    try:
        score = _score(record, task, text)
    except EvaluationError as stopped:
        return error(str(stopped), text, **detail)
    except Exception as bad:
        reason = f"the scorer cannot read it: {type(bad).__name__}: {bad}"[:300]
        try:
            _score(record, task, record.get("answer", ""))
        except Exception as own:
            return error(f"the scorer fails on the record: {type(own).__name__}: {own}"[:300], text, **detail)
        return wrong(text, reason, **detail)
    if not (math.isfinite(score) and 0 <= score <= 1):
        return error(f"the scorer gave {score}, expected a number from 0 to 1", text, **detail)
    if score >= record.get("min_score", MIN_SCORE):
        return correct(text, score, **detail)
    return wrong(text, f"the scorer gave {score:.3g}", score=score, **detail)


def _metadata(record: Record) -> dict[str, Any]:
    """The entry's metadata. Raises RecordError."""
    metadata = record.get("metadata")
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError) as bad:
            raise RecordError(f"{record.where}: metadata is no JSON ({bad})") from bad
    if not isinstance(metadata, dict):
        raise RecordError(
            f"{record.where}: metadata is {shown(str(metadata))}, expected an entry's metadata of reasoning-gym"
        )
    return metadata


def _score(record: Record, task: str, text: str) -> float:
    """The library's score of a text. The scorer gets copies: some change their entry."""
    metadata = copy.deepcopy(_metadata(record))
    if task in _TUPLES:
        metadata = {key: _tuples(value) for key, value in metadata.items()}
    turns = [turn["content"] for turn in record.get("messages", []) if turn["role"] == "user"]
    question = record.get("question") or record.get("prompt") or (turns[-1] if turns else "")
    scorer = _scorer(task)
    with unevaluated():
        return float(
            scorer.score_answer(text, {"question": question, "answer": record.get("answer"), "metadata": metadata})
        )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@cache
def _tasks() -> dict[str, Any]:
    """The library's tasks: their class and the class of their settings, by name."""
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError as missing:
        raise UserError(
            'verifier reasoning-gym needs the library of its name; pip install "rlvr[reasoning-gym]"'
        ) from missing
    disarm()
    return {name: classes for name, classes in DATASETS.items() if name != "composite"}


@cache
def _scorer(task: str) -> Any:
    dataset, settings = _tasks()[task]
    return dataset(config=settings())
