"""The number after ####."""

import time

import pytest
from judging import verdict

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import load_check


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("18", "9 * 2 = <<9*2=18>>18\n#### 18", "correct"),
        ("She has 9 * 2 = 18.\n#### 18", "#### 18", "correct"),
        ("70000", "#### $70,000.", "correct"),
        ("70,000", "#### 70000", "correct"),
        ("18", "#### 18.00", "correct"),
        ("18", "#### 18 dollars", "correct"),
        ("18", r"\boxed{\$18}", "correct"),
        ("18", "The answer is 6 * 3 = 18.", "correct"),
        ("18", "The answer is 18, of the 20 she had.", "correct"),
        ("13", "27 - 14 = <<27-14=13>>13\nA: 13", "correct"),
        ("-3", "so it is -3", "correct"),
        ("18", "#### 17", "wrong"),
        ("18", "18\n#### 17", "wrong"),
        ("-3", "#### 3", "wrong"),
        ("18", "#### 17 or 18", "wrong"),
        ("18", "#### 18, 19", "wrong"),
        ("18", r"\boxed{17} or \boxed{18}", "wrong"),
        ("18", "", "no_answer"),
        ("18", "#### eighteen", "no_answer"),
        ("18", "<think>#### 18", "no_answer"),
        ("18", r"#### 18 \boxed{", "no_answer"),
    ],
)
def test_gsm8k(answer, completion, wanted):
    assert verdict("gsm8k", answer, completion) == wanted


def test_cut_before_its_answer():
    assert verdict("gsm8k", "18", "9 * 2 = 18", finish_reason="length") == "truncated"


def test_an_answer_that_is_no_number_is_refused():
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is 'many', expected a number or `#### number`"):
        verdict("gsm8k", "many", "x")
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is missing"):
        load_check("gsm8k")(Record({"completion": "x"}, "r.jsonl:1"))


HOSTILE = {
    "braces": "{" * 100_000,
    "nested parentheses": "(" * 3000 + "1" + ")" * 3000,
    "null bytes": "\x00" * 100_000,
    "right to left": "\u202e18\u202c" * 20_000,
    "spaces": "The answer is A" + " " * 50_000 + "x",
    "digits": "1" * 100_000,
    "code": "__import__('os').system('touch pwned')",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_ends_with_a_verdict(text):
    begun = time.process_time()
    assert verdict("gsm8k", "17", text) in ("wrong", "no_answer")
    assert time.process_time() - begun < 1
