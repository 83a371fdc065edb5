import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts.gsm8k import problem
from rlvr_cli.records import Record
from rlvr_cli.stages.verify import verify

SHELLS = {
    "question": "Mia collects 7 shells a day for 6 days. How many shells has she?",
    "answer": "She collects 7 * 6 = <<7*6=42>>42 shells.\n#### 42",
}


def test_the_question_is_asked_bare_and_the_number_is_the_answer() -> None:
    assert problem(Record(SHELLS)) == {
        "messages": [{"role": "user", "content": SHELLS["question"]}],
        "answer": "42",
        "verifier": "gsm8k",
        "source": "gsm8k",
        "solution": SHELLS["answer"],
    }


@pytest.mark.parametrize(
    ("written", "answer"),
    [("1,200", "1200"), ("12,345,678.5", "12345678.5"), ("-3", "-3"), ("  $18 ", "$18"), ("50%", "50%")],
)
def test_thousands_separators_and_space_go(written: str, answer: str) -> None:
    assert problem(Record({**SHELLS, "answer": f"So:\n####{written}"}))["answer"] == answer


def test_what_follows_the_last_hashes_counts() -> None:
    assert problem(Record({**SHELLS, "answer": "#### 3 is a step\n#### 42"}))["answer"] == "42"


def test_the_verifier_accepts_a_solution_that_ends_as_gsm8ks_do() -> None:
    [scored] = verify([problem(Record(SHELLS)).extended(completion=SHELLS["answer"])])
    assert scored["verdict"] == "correct"


def test_other_columns_pass_and_the_users_verifier_wins() -> None:
    made = problem(Record({**SHELLS, "id": 5, "source": "mine", "verifier": "numeric"}), "math")
    assert (made["id"], made["source"], made["verifier"]) == (5, "mine", "math")
    assert problem(Record({**SHELLS, "verifier": "numeric"}))["verifier"] == "numeric"


def test_a_solution_that_says_the_same_is_kept() -> None:
    assert problem(Record({**SHELLS, "solution": SHELLS["answer"]})) == problem(Record(SHELLS))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"question": None}, "a.jsonl:7: question is missing; a row of GSM8K has question and answer"),
        ({"question": ["x"]}, r'a.jsonl:7: question is \["x"\], expected a string'),
        ({"question": " \n"}, "a.jsonl:7: question is empty"),
        ({"answer": 42}, "a.jsonl:7: answer is 42, expected a string"),
        ({"answer": "42"}, "a.jsonl:7: answer has no ####"),
        ({"answer": "so\n#### many"}, "a.jsonl:7: answer is 'many', expected a number"),
        ({"answer": "so\n#### 1,2"}, "a.jsonl:7: answer is '1,2', expected a number"),
        ({"answer": "so\n####"}, "a.jsonl:7: answer is '', expected a number"),
        ({"verifier": "judge"}, "a.jsonl:7: verifier: no verifier 'judge'; there are "),
        ({"verifier": "os:system"}, "a.jsonl:7: verifier: os:system: data cannot name your own code"),
        ({"solution": "42 shells"}, "a.jsonl:7: solution is there, and answer becomes it; rename it or leave it out"),
        ({"reward": 1.0}, "a.jsonl:7: reward is a column that rlvr writes itself; rename it or leave it out"),
        ({"image": {"path": "x.png"}}, "a.jsonl:7: image is there, and a policy is asked in text alone"),
        ({"problem_id": 5}, "a.jsonl:7: problem_id is 5, expected a string"),
    ],
)
def test_what_is_no_such_row_is_told_with_its_place_and_field(changed: dict, message: str) -> None:
    row = {name: value for name, value in {**SHELLS, **changed}.items() if value is not None}
    with pytest.raises(RecordError, match=message):
        problem(Record(row, "a.jsonl:7"))
