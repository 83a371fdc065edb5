"""Where a completion states its final answer."""

import time

import pytest

from rlvr_cli.verifiers.extraction import boxes, find, find_box, hedges, nothing


def found(completion, finish_reason="stop", prompt="1 + 1?"):
    return find({"prompt": prompt, "completion": completion, "finish_reason": finish_reason})


@pytest.mark.parametrize(
    ("completion", "answer", "how"),
    [
        (r"so it is \boxed{4}", "4", "box"),
        (r"first \boxed{3}, but that is too small. The sum is \boxed{4}", "4", "box"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", "box"),
        (r"\boxed{\left\{ 1, 2 \right.}", r"\left\{ 1, 2 \right.", "box"),
        (r"thus \boxed 7", "7", "box"),
        (r"\fbox{9}", "9", "box"),
        (r"<think>\boxed{3}</think> It is \boxed{4}", "4", "box"),
        (r"<think>maybe \boxed{3}</think> The answer is 4.", "4", "phrase"),
        ("a </think> b </think> Answer: 4", "4", "phrase"),
        ("<answer>1</answer> no: <answer> 4 </answer>", "4", "tag"),
        ("<answer>4", "4", "tag"),
        ("6 - 2 = 4\n#### 4", "4", "hashes"),
        ("the answer is 20%\n#### 4\nthanks", "4", "hashes"),
        ("#### 3\nno, the answer is 4", "4", "phrase"),
        ("**Answer:** 4", "4", "phrase"),
        ("The final answer is $x = 4$. I hope it is correct.", "$x = 4$", "phrase"),
        ("The answer is 4.5 m. Done", "4.5 m", "phrase"),
        ("The answer is:\n\\[\n4\n\\]\nQED", "\\[\n4\n\\]", "phrase"),
        ("<thinking>the answer is 3</thinking> The answer is 4", "4", "phrase"),
        ("<answer>The answer is 4</answer>", "4", "phrase"),
        ("<|begin_of_box|>4<|end_of_box|>", "4", "tag"),
        ("答案：4。谢谢", "4", "phrase"),
        ("Die Antwort ist 4.", "4", "phrase"),
        ("La respuesta es: 4", "4", "phrase"),
        ("The answer to the answer to it is 4", "4", "phrase"),
        ("answered: 3. The answer is 4", "4", "phrase"),
        ("\\boxed{\\frac{1}{2}\n\nI mean \\boxed{4}", "4", "box"),  # a blank line ends mathematics
        (r"\boxed{3}. I hope that helps. The final answer is $4$. Bye", "$4$", "phrase"),
        (r"\boxed{4}. The final answer is above.", "4", "box"),
        (r"\boxed{4}. The other answer is 3.", "4", "box"),
    ],
)
def test_the_answer_is_found(completion, answer, how):
    it = found(completion)
    assert (it.text, it.how, it.hedged) == (answer, how, False)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        (r"<think> it may be \boxed{4}", "the thinking is not closed"),
        (r"\boxed{3}</think>ok <think> again", "the thinking is not closed"),
        (r"\boxed{3} and then \boxed{4", "the last box is not closed"),
        (r"\boxed{\frac{\boxed{1}}{2", "the last box is not closed"),
        (r"\boxed{3} and then \boxed", "the last box is not closed"),
        (r"\boxed{ }", "the last box is empty"),
        ("", "no final answer was found"),
    ],
)
def test_nothing_stands_in_for_a_missing_answer(completion, reason):
    it = found(completion)
    assert (it.text, it.rest, it.reason) == (None, None, reason)


def test_a_prompt_can_open_the_thinking():
    assert found(r"\boxed{4}", prompt="Q <think>\n").reason == "the thinking is not closed"
    assert found(r"hm </think> \boxed{4}", prompt="Q <think>\n").text == "4"


@pytest.mark.parametrize(
    "completion",
    [
        r"\boxed{3} or \boxed{4}",
        r"$x = \boxed{3}$ or $x = \boxed{4}$",
        r"\boxed{3} \text{ or } \boxed{4}",
        r"either \boxed{3} or maybe \boxed{4}",
        r"\boxed{1} \boxed{2} \boxed{3}",
        "\\boxed{1}\n\n\\boxed{2}",
    ],
)
def test_boxes_that_hedge(completion):
    it = found(completion)
    assert it.hedged
    assert it.boxes >= 2


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (r"$\boxed{-2} \quad \text{and} \quad \boxed{1}$", "-2, 1"),
        (r"\boxed{2}, \boxed{3}", "2, 3"),
        (r"\boxed{2} books and \boxed{3} pens", "2, 3"),
        (r"\boxed{2} \text{ for part (a) and } \boxed{3}", "2, 3"),
        (r"$y_1 = \boxed{2}$ and $y_2 = \boxed{3}$", "2, 3"),
        (r"\boxed{2} is too small, and so it is \boxed{3}", "3"),
        (r"\boxed{2} books. The rest and \boxed{3}", "3"),
        ("\\boxed{5}\n\n**Final answer**\n\\boxed{5}", "5"),
        ("\\boxed{5} \\boxed{5}", "5"),
        (r"\boxed{3} + 1 = \boxed{4}", "4"),
    ],
)
def test_boxes_that_are_one_answer(completion, answer):
    it = found(completion)
    assert (it.text, it.hedged) == (answer, False)


@pytest.mark.parametrize(
    "completion", ["the answer is 12", "#### 12", "<answer>12", r"\boxed{12", "it is 12", "A is B"]
)
def test_a_cut_completion_has_no_answer_that_its_cut_may_have_shortened(completion):
    record = {"completion": completion, "finish_reason": "length"}
    it = find(record)
    assert (it.text, it.rest) == (None, None)
    assert nothing(record, it.reason).verdict == "truncated"
    assert nothing({**record, "finish_reason": "stop"}, it.reason).verdict == "no_answer"


@pytest.mark.parametrize(
    "completion", [r"\boxed{12} beca", "the answer is 12. Let", "#### 12\nAs", "<answer>12</answer>"]
)
def test_a_cut_completion_may_have_answered_before(completion):
    assert found(completion, "length").text == "12"


def test_the_last_box_whatever_else_is_said():
    record = {"completion": r"\boxed{3}. The final answer is $4$."}
    assert find(record).text == "$4$"
    assert find_box(record).text == "3"
    assert find_box({"completion": "The answer is 4"}).reason == "there is no box"
    assert find_box({"completion": r"\boxed{3} \boxed{"}).reason == "the last box is not closed"


def test_text_without_a_statement_is_left_to_the_verifier():
    it = found("forty two")
    assert (it.text, it.how, it.rest) == (None, "none", "forty two")


@pytest.mark.parametrize(
    ("answer", "hedge"), [("A or B", True), (r"3 \text{ or } 4", True), ("A or B or C", True), ("for 4", False)]
)
def test_hedges(answer, hedge):
    assert hedges(answer) is hedge


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{" * 30_000,
        r"\boxed{" + "{" * 100_000,
        r"\boxed{1}" * 20_000,
        r"\boxed" + " " * 100_000,
        r"\[" * 30_000,
        "answer " * 20_000,
        "answer is " * 20_000,
        "<answer>" * 20_000,
        "<think></think>" * 20_000,
        "#" * 100_000,
        "\x00" * 100_000,
        "\u202e\u0130" * 50_000,
        "\\boxed{\n\n" * 30_000,
        "\\boxed{1} and " * 20_000,
        "The final answer is " * 20_000,
        "\\boxed{1}" + "final answer: x " * 20_000,
        "</thinking>" * 20_000,
    ],
)
def test_hostile_text_ends_in_linear_time(text):
    begun = time.process_time()
    find({"completion": text})
    boxes(text)
    assert time.process_time() - begun < 1


def test_positions_hold_after_letters_whose_small_form_is_longer():
    assert found("\u0130" * 20 + "<ANSWER>4</ANSWER>").text == "4"
