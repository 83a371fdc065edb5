import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts.trl import problem
from rlvr_cli.records import Record

TURNS = [{"role": "system", "content": "Box the answer."}, {"role": "user", "content": "What is 6 * 7?"}]


def test_a_text_prompt_stays_one() -> None:
    row = {"prompt": "6 * 7 =", "answer": "42", "topic": "products"}
    assert problem(Record(row)) == {"prompt": "6 * 7 =", "answer": "42", "verifier": "math", "topic": "products"}


def test_turns_become_messages_system_turns_included() -> None:
    made = problem(Record({"prompt": TURNS, "solution": "42", "source": "mine"}))
    assert made == {"messages": TURNS, "answer": "42", "verifier": "math", "source": "mine", "solution": "42"}


@pytest.mark.parametrize(
    ("columns", "answer", "kept"),
    [
        ({"answer": "42", "ground_truth": "43", "solution": "44"}, "42", {"ground_truth": "43", "solution": "44"}),
        ({"ground_truth": 42, "solution": r"\boxed{44}"}, "42", {"solution": r"\boxed{44}"}),
        (
            {"solution": r"First \boxed{6}. It is $\boxed{42}$."},
            "42",
            {"solution": r"First \boxed{6}. It is $\boxed{42}$."},
        ),
        ({"answer": "6 * 7 = 42\n#### 42"}, "42", {"solution": "6 * 7 = 42\n#### 42"}),
        ({"answer": r"\boxed{42}"}, "42", {"solution": r"\boxed{42}"}),
        ({"answer": "#### 42", "solution": "by heart"}, "42", {"solution": "by heart"}),
        ({"solution": r"$\frac{1}{2}$"}, r"$\frac{1}{2}$", {"solution": r"$\frac{1}{2}$"}),
    ],
)
def test_where_the_answer_is_found_and_what_is_kept(columns: dict, answer: str, kept: dict) -> None:
    made = problem(Record({"prompt": "?", **columns}))
    assert made == {"prompt": "?", "answer": answer, "verifier": "math", **kept}


def test_the_users_verifier_wins() -> None:
    assert problem(Record({"prompt": "?", "answer": "B"}), "choice")["verifier"] == "choice"
    assert problem(Record({"prompt": "?", "answer": "B", "verifier": "choice"}))["verifier"] == "choice"


def test_a_conversation_beside_the_prompt_is_left_out() -> None:
    assert "messages" not in problem(Record({"prompt": "?", "answer": "1", "messages": TURNS}))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "?", "chosen": "a", "rejected": "b"}, "chosen is there: the row holds a preference"),
        ({"chosen": TURNS, "rejected": TURNS}, "chosen is there"),
        ({"prompt": "?", "completion": "42", "answer": "42"}, "completion is there: the row holds a completion to im"),
        ({"prompt": "?", "completions": ["4"], "labels": [True]}, "completions is there"),
        ({"messages": TURNS, "answer": "42"}, "prompt is missing; messages is a conversation to imitate"),
        ({"text": "6 * 7 = 42"}, "prompt is missing; TRL's prompt sets have it"),
        ({"prompt": "?"}, "answer is missing, and so are ground_truth and solution; nothing to verify by"),
        ({"prompt": "", "answer": "1"}, "prompt is empty"),
        ({"prompt": 5, "answer": "1"}, "prompt is 5, expected a list of turns"),
        ({"prompt": [], "answer": "1"}, "prompt is empty"),
        ({"prompt": "?", "solution": r"so \boxed{4"}, "solution states no answer .*the last box is not closed"),
        ({"prompt": "?", "answer": "so ####"}, "answer is empty"),
        ({"prompt": "?", "answer": ["1", "2"]}, r'answer is \["1","2"\], expected one answer'),
    ],
)
def test_what_is_no_prompt_set_is_refused_with_a_reason(row: dict, message: str) -> None:
    with pytest.raises(RecordError, match=f"^t.jsonl:2: {message}"):
        problem(Record(row, "t.jsonl:2"))
