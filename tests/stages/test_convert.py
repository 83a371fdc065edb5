from typing import Any

import pytest

from rlvr_cli.records import Record
from rlvr_cli.stages.convert import Tally, convert


def kept(rows: list[dict[str, Any]]) -> tuple[list[int], int]:
    """The positions kept when duplicates are dropped, and how many were found."""
    tally = Tally()
    records = [Record({**row}, str(position)) for position, row in enumerate(rows)]
    return [int(record.where) for record in convert(records, tally, drop_duplicates=True)], tally.duplicates


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"problem_id": "a", "prompt": "x"}, {"problem_id": "a", "prompt": "y"}], [0]),
        ([{"prompt": "x", "answer": "1"}, {"prompt": "x", "answer": "1", "source": "s"}], [0]),
        ([{"prompt": "x", "answer": "1"}, {"prompt": "x", "answer": "2"}], [0, 1]),
        ([{"problem_id": "a", "rollout_id": "1"}, {"problem_id": "a", "rollout_id": "2"}], [0, 1]),
        ([{"rollout_id": "1", "pivot_id": "p"}, {"rollout_id": "1", "pivot_id": "q"}], [0, 1]),
        ([{"problem_id": "a", "n": 8, "policy_id": "1"}, {"problem_id": "a", "n": 8, "policy_id": "2"}], [0, 1]),
        ([{"mine": 1}, {"mine": 2}, {"mine": 1}], [0, 1]),
    ],
    ids=["problem_id", "content", "another answer", "rollouts", "pivots", "statistics", "neither"],
)
def test_what_makes_a_record_a_duplicate(rows: list[dict[str, Any]], expected: list[int]) -> None:
    assert kept(rows) == (expected, len(rows) - len(expected))


def test_duplicates_are_counted_and_kept_unless_asked() -> None:
    tally = Tally()
    records = [Record({"problem_id": "a"})] * 3
    assert list(convert(records, tally)) == records
    assert (tally.records, tally.duplicates) == (3, 2)


def test_problems_are_counted_by_verifier() -> None:
    tally = Tally()
    list(convert([Record({"verifier": "math"}), Record({"verifier": "gsm8k"}), Record({"n": 8})], tally))
    assert (tally.records, tally.verifiers) == (3, {"math": 1, "gsm8k": 1})
