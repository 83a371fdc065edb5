"""Suspect labels: completions that agree with each other and not with the answer."""

import pytest

from rlvr_cli.records import Record
from rlvr_cli.verifiers.audit import LEAST, VALUES, Audit, same


def scored(extracted, verdict="wrong", problem="p", answer="42"):
    columns = {"problem_id": problem, "answer": answer, "verdict": verdict, "verifier_detail": {"verifier": "math"}}
    return Record({**columns, **({} if extracted is None else {"extracted": extracted})}, "s.jsonl:1")


def suspects(*records):
    audit = Audit()
    assert list(audit.count(records)) == list(records)
    return audit.suspects()


def test_a_row_says_all_that_is_needed_to_look():
    assert suspects(*[scored("41")] * 3, scored("42", "correct")) == [
        {
            "problem_id": "p",
            "where": "s.jsonl:1",
            "verifier": "math",
            "answer": "42",
            "agreed": "41",
            "count": 3,
            "n": 4,
            "share": 0.75,
            "accuracy": 0.25,
        }
    ]


@pytest.mark.parametrize(
    "records",
    [
        [scored("41")] * (LEAST - 1),  # too few
        [scored("41")] * 2 + [scored("42", "correct")] * 2,  # half is no majority
        [scored("41")] * 2 + [scored("40")] * 2 + [scored("39")],  # they do not agree
        [scored("42", "correct")] * 9,
        [scored(None, "no_answer")] * 9,  # nothing to agree on
        [scored("41", "error")] * 9,  # nobody knows
        [scored("41", "timeout")] * 9,
        [scored("41", problem=f"p{number}") for number in range(9)],  # another problem each
    ],
)
def test_who_is_no_suspect(records):
    assert suspects(*records) == []


def test_what_could_not_be_judged_is_not_counted():
    (row,) = suspects(*[scored("41")] * 4, *[scored(None, "error")] * 20)
    assert (row["count"], row["n"]) == (4, 4)


def test_a_problems_completions_need_not_be_together():
    mixed = [scored("41", problem=f"p{number % 3}") for number in range(12)]
    assert [row["problem_id"] for row in suspects(*mixed)] == ["p0", "p1", "p2"]


def test_the_strongest_agreement_comes_first():
    weak = [scored("41", problem="weak")] * 3 + [scored("42", "correct", problem="weak")] * 2
    assert [row["problem_id"] for row in suspects(*weak, *[scored("41")] * 4)] == ["p", "weak"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("41", "41.0"), ("1,000", "1000"), ("$1/2$", r"1/2"), (r"\left( 1, 2 \right]", "(1,2]"), ("Paris.", "paris")],
)
def test_the_same_answer_written_differently(one, other):
    assert same(one) == same(other)
    assert len(suspects(scored(one), scored(other), scored(one), scored(other))) == 1


@pytest.mark.parametrize(("one", "other"), [("41", "-41"), ("1/2", "1/3"), ("(1, 2]", "[1, 2]"), ("x+1", "x-1")])
def test_different_answers(one, other):
    assert same(one) != same(other)


def test_a_problem_takes_little_memory_however_many_answers_it_has():
    audit = Audit()
    records = [
        scored("z" * 5000),
        *[scored(f"y{number}" + "x" * 5000) for number in range(1000)],
        *[scored("41")] * 1200,
    ]
    list(audit.count(records))
    (problem,) = audit._problems.values()
    assert len(problem.values) <= VALUES
    assert all(len(text) <= 200 for text, _ in problem.values.values())
    (row,) = audit.suspects()
    assert row["agreed"] == "41"
    assert row["count"] <= 1200
