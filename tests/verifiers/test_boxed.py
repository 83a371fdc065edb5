"""The last box as text."""

import pytest
from judging import verdict


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        (r"\frac{1}{2}", r"first \boxed{3}, then \boxed{\dfrac{1}{2}}", "correct"),
        ("(1, 2)", r"\boxed{\left(1,2\right)}", "correct"),
        ("Friday", r"\boxed{\text{friday}.}", "correct"),
        ("7", r"\boxed{{7}}", "correct"),
        ("7", r"\boxed{$７$}", "correct"),
        ("1,234", r"\boxed{1{,}234}", "correct"),
        (r"so it is \boxed{7}", r"\boxed{7}", "correct"),
        ("12", r"\boxed{1 2}", "wrong"),
        ("0.5", r"\boxed{\frac{1}{2}}", "wrong"),
        ("7", r"\boxed{7} or \boxed{8}", "wrong"),
        ("7", r"\boxed{7} and then \boxed{8}", "wrong"),
        ("7", r"\boxed{8}. The final answer is 7.", "wrong"),
        ("7", "The answer is 7.", "no_answer"),
        ("7", r"\boxed{7} \boxed{", "no_answer"),
        ("7", r"<think>\boxed{7}", "no_answer"),
        ("7", r"\boxed{" + "{" * 100_000, "no_answer"),
    ],
)
def test_boxed(answer, completion, wanted):
    assert verdict("boxed", answer, completion) == wanted


def test_a_cut_text_without_a_box_is_truncated():
    assert verdict("boxed", "7", "so it is", finish_reason="length") == "truncated"
