"""One letter of a multiple choice."""

import pytest
from judging import judged, reason, verdict

from rlvr_cli.errors import RecordError

CITIES = ["Paris", "London", "Rome", "Berlin"]


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("B", "B"),
        ("(B)", "The answer is (B)."),
        ("B", "The answer is B, since A is false."),
        ("B. London", r"\boxed{\text{B}}"),
        ("B", r"\boxed{\text{(B)}}"),
        ("B", r"\boxed{(\textbf{B})}"),
        ("B", r"The answer is $\mathrm{B}$."),
        ("B", "Ｂ"),
        ("B", "（Ｂ）"),
        ("B", "𝐁"),
        ("B", "**B) London**"),
        ("B", "[B]"),
        ("B", "Option B"),
        ("D", "D. it can't be A or B"),
        ("D", "The answer is surely D, it can't be A or B"),
        ("B", "It is not A, therefore I take B"),
        ("B", "The answer is not A but B"),
        ("C", "The answer is neither A nor B but C"),
        ("B", "I pick B. A is wrong."),
        ("B", "I think B is correct, since A is too large."),
        ("B", "Option B is the best. Option A would be wrong."),
        ("B", "It's either A or B, and I'd go with B"),
        ("B", "<think>A?</think>**B**"),
        ("B", "A bird sings. B"),
        ("C", "I ate a plum. (C)"),
        ("B", "A. Paris is in France.\nB. London is right.\n\nSo the answer is B"),
        ("B", "A) no\nB) yes\nC) no\n\nB"),
        ("B", "A) no\nB) yes\nC) no\n\nI choose (B)."),
        ("B", "选择 B。不是 A"),
        ("A", "答案是A，因为B不对"),
        ("C", r"\boxed{c}"),
        ("C", "<answer>c</answer>"),
        ("C", "The answer is (c)"),
        ("c", "The answer is c."),
        ("c", "C"),
        ("A", "A is correct"),
    ],
)
def test_the_letter_that_is_chosen(answer, completion):
    assert verdict("choice", answer, completion) == "correct"


@pytest.mark.parametrize(
    "completion",
    [
        "A, B",
        "A or B",
        "A and B",
        "A/B",
        "A B C D",
        "A\nB\nC\nD",
        "(A) (B)",
        "Both A and B",
        r"\boxed{A, B}",
        r"\boxed{A} or \boxed{B}",
        "The answer is A, B or C",
        "The answer is A or perhaps B",
        "<answer>A or B or C</answer>",
    ],
)
def test_several_letters_are_a_hedge(completion):
    for letter in "ABCD":
        assert verdict("choice", letter, completion) == "wrong"
    assert "several" in reason("choice", "A", completion)


def test_all_options_restated_are_no_answer():
    options = "A. Paris\nB. London\nC. Rome\nD. Berlin"
    for letter in "ABCD":
        assert verdict("choice", letter, options) == "no_answer"


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("A", "A dog has four legs"),
        ("A", "No letter here"),
        ("I", "I do not know"),
        ("C", "Answer: c"),  # small letters are words
        ("B", "AT&T"),
        ("B", r"\boxed{AB}"),
        ("B", "The answer is not B"),
        ("B", ""),
    ],
)
def test_no_letter_is_no_answer(answer, completion):
    assert verdict("choice", answer, completion) == "no_answer"


@pytest.mark.parametrize(
    ("answer", "completion"), [("B", "C"), ("A", "The answer is not A but B"), ("A", "Because B is")]
)
def test_another_letter_is_wrong(answer, completion):
    assert verdict("choice", answer, completion) == "wrong"


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("B", "london!", "correct"),
        ("B", "The answer is London.", "correct"),
        ("B", r"\boxed{\text{London}}", "correct"),
        ("A", "London", "wrong"),
        ("London", "B", "correct"),
        ("(B) London", "London", "correct"),
        ("B", "B) London", "correct"),
        ("B", "B) Rome", "wrong"),  # a letter with another option's text
        ("C", "B) Rome", "wrong"),
        ("B", "E", "no_answer"),  # there are four
        ("B", "as in vitamin K, so B", "correct"),
    ],
)
def test_with_the_options_texts(answer, completion, wanted):
    assert verdict("choice", answer, completion, choices=CITIES) == wanted


def test_a_lone_letter_is_a_letter_even_where_it_is_an_options_text():
    assert verdict("choice", "B", "B", choices=["B", "A"]) == "correct"


def test_the_letter_is_what_was_extracted():
    assert judged("choice", "B", r"\boxed{\text{(C)}}").extracted == "C"


@pytest.mark.parametrize(
    ("answer", "columns", "says"),
    [
        ("all of them", {}, "expected a letter such as B or \\(B\\)"),
        ("A and B", {}, "expected a letter such as B"),
        ("E", {"choices": CITIES}, "expected a letter of choices"),
        ("A", {"choices": "Paris, London"}, "choices is .*, expected a list"),
        ("A", {"choices": []}, "choices is .*, expected a list"),
    ],
)
def test_what_cannot_be_compared_is_refused(answer, columns, says):
    with pytest.raises(RecordError, match=f"r.jsonl:1: .*{says}"):
        verdict("choice", answer, "A", **columns)
