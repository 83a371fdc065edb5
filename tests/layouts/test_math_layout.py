import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts.math import problem
from rlvr_cli.records import Record
from rlvr_cli.stages.verify import verify


def solved(solution: str) -> Record:
    """A row as MATH has them."""
    row = {"problem": "What is $x$?", "level": "Level 2", "type": "Algebra", "solution": solution}
    return Record(row, "algebra/1.json:1")


def test_a_row_of_math() -> None:
    row = solved(r"Since $2x = 1$, we get $x = \boxed{\frac{1}{2}}$.")
    assert problem(row) == {
        "messages": [{"role": "user", "content": "What is $x$?"}],
        "answer": r"\frac{1}{2}",
        "verifier": "math",
        "source": "math",
        "level": "Level 2",
        "type": "Algebra",
        "solution": row["solution"],
    }


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"$\boxed{3}$, no: $\boxed{4}$ it is", "4"),
        (r"so $\boxed{\{1, \frac{2}{\sqrt{3}}\}}$.", r"\{1, \frac{2}{\sqrt{3}}\}"),
        (r"so $\boxed{(1, 2]}$", "(1, 2]"),
        (r"so $x = \boxed 5$.", "5"),
        (r"so $x = \fbox{5}$.", "5"),
        (r"so $x = \boxed{-1}$ and $y = \boxed{7}$.", "-1, 7"),
        (r"the roots are $\boxed{2}$ and $\boxed{3}$.", "2, 3"),
        (r"$\boxed{\text{odd}}$, $\boxed{\text{odd}}$", r"\text{odd}"),
    ],
)
def test_the_last_box_is_the_answer(solution: str, answer: str) -> None:
    made = problem(solved(solution))
    assert made["answer"] == answer
    [scored] = verify([made.extended(completion=f"I find \\boxed{{{answer}}}")])
    assert scored["verdict"] == "correct"


def test_a_row_of_math_500_has_its_answer_and_its_id() -> None:
    row = {"problem": "What is $x$?", "answer": "7", "subject": "Algebra", "unique_id": "test/algebra/1.json"}
    made = problem(Record({**row, "solution": r"\boxed{8}"}))
    assert (made["answer"], made["subject"], made["problem_id"]) == ("7", "Algebra", "test/algebra/1.json")
    assert "unique_id" not in made
    assert problem(Record({**row, "unique_id": 5}))["unique_id"] == 5  # a count, which begins again in each file


@pytest.mark.parametrize(
    ("answer", "text"),
    [(7, "7"), (-3.0, "-3"), (0.25, "0.25"), (["7"], "7"), (["7", " 7"], "7"), (" x + 1\n", "x + 1")],
)
def test_answers_as_they_are_found_become_text(answer: object, text: str) -> None:
    assert problem(Record({"problem": "?", "answer": answer}))["answer"] == text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"problem": None}, "problem is missing; a row of MATH has problem, and solution or answer"),
        ({"solution": None}, "solution is missing; a row of MATH"),
        ({"solution": "So it is 5."}, r"solution states no answer in \\boxed{...} \(there is none\)"),
        ({"solution": r"So \boxed{5"}, "solution states no answer .*the last box is not closed"),
        ({"solution": r"So \boxed{}"}, "solution states no answer .*the last box is empty"),
        ({"solution": r"So $\boxed{5}$ or $\boxed{6}$"}, "solution ends in several answers joined by or"),
        ({"answer": ["1/2", "0.5"]}, r'answer is \["1/2","0.5"\], expected one answer; keep one of those accepted'),
        ({"answer": []}, r"answer is \[\], expected one answer"),
        ({"answer": True}, "answer is true, expected a string or a number"),
        ({"answer": {"value": 5}}, r'answer is {"value":5}, expected a string or a number'),
        ({"answer": "  "}, "answer is empty"),
    ],
)
def test_what_is_no_such_row_is_told_with_its_place_and_field(changed: dict, message: str) -> None:
    row = {**solved(r"\boxed{5}"), **changed}
    with pytest.raises(RecordError, match=f"^algebra/1.json:1: {message}"):
        problem(Record({name: value for name, value in row.items() if value is not None}, "algebra/1.json:1"))
