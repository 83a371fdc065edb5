"""The verifiers that compare numbers, letters and texts: what each accepts and what it does not."""

import time

import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import load, load_check


def verdict(verifier, answer, completion, **columns):
    record = Record({"answer": answer, "completion": completion, "finish_reason": "stop", **columns}, "r.jsonl:1")
    load_check(verifier)(record)
    return load(verifier)(record).verdict


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


def test_gsm8k_cut_before_its_answer():
    assert verdict("gsm8k", "18", "9 * 2 = 18", finish_reason="length") == "truncated"


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("3.14", "about 3.140001", "correct"),
        ("3.14", "about 3.1401", "wrong"),
        ("1000000", "1000000.5", "wrong"),  # an integer is exact
        ("1000000.0", "1000000.5", "correct"),
        ("5", "5.0", "correct"),
        ("0.0", "0.0000005", "correct"),
        ("0", "0.0000005", "wrong"),
        ("1e-10", "1e-9", "wrong"),  # small answers are not all the same
        ("0.75", "3/4", "correct"),
        ("3e6", r"\boxed{3 \times 10^6}", "correct"),
        ("4", "1, 2, 3 and then 4", "correct"),
        ("4", "The answer is 3 or 4", "wrong"),
        ("4", "infinity", "no_answer"),
        ("4", "nan", "no_answer"),
        ("4", "1e99999", "no_answer"),
    ],
)
def test_numeric(answer, completion, wanted):
    assert verdict("numeric", answer, completion) == wanted


def test_numeric_takes_the_tolerance_of_the_record():
    assert verdict("numeric", "100", "101", rel_tol=0.02) == "correct"
    assert verdict("numeric", "100", "101", rel_tol=0.001) == "wrong"
    assert verdict("numeric", "100", "101", abs_tol=1) == "correct"
    with pytest.raises(RecordError, match=r"r.jsonl:1: rel_tol is '2%'"):
        verdict("numeric", "100", "101", rel_tol="2%")


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("Paris", " Paris\n", "correct"),
        ("Paris ", r"I think \boxed{Paris}", "correct"),
        ("Paris", "<think>Rome?</think>Paris", "correct"),
        ("Paris", "The answer is Paris.", "correct"),
        ("Paris", "paris", "wrong"),
        ("New York", "New  York", "wrong"),
        ("Paris", "  ", "no_answer"),
    ],
)
def test_exact(answer, completion, wanted):
    assert verdict("exact", answer, completion) == wanted


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("B", "B", "correct"),
        ("(B)", "The answer is (B).", "correct"),
        ("B", "The answer is B, since A is false.", "correct"),
        ("B. Paris", r"\boxed{\text{B}}", "correct"),
        ("(D) Alina", "D. it can't be A or B", "correct"),
        ("D", "The answer is for sure D, it can't be A or B", "correct"),
        ("B", "It is not A, therefore I think it's B", "correct"),
        ("B", "<think>A?</think>**B**", "correct"),
        ("B", "A bird sings. B", "correct"),
        ("C", "I ate a plum. (C)", "correct"),
        ("B", "C", "wrong"),
        ("B", "A, B", "wrong"),
        ("B", "The answer is A or B or C", "wrong"),
        ("B", "The answer is A, B or C", "wrong"),
        ("C", "Answer: c", "no_answer"),
        ("A", "No letter here", "no_answer"),
        ("A", "I do not know", "no_answer"),
    ],
)
def test_choice(answer, completion, wanted):
    assert verdict("choice", answer, completion) == wanted


def test_choice_by_the_options_text():
    assert verdict("choice", "B", "The answer is beta.", choices=["Alpha", "Beta"]) == "correct"
    assert verdict("choice", "A", "beta", choices=["Alpha", "Beta"]) == "wrong"


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        (r"\d{3}", "The answer is 123", "correct"),
        (r"\d{3}", "The answer is 1234", "wrong"),  # all of it has to match
        (r"(?i)yes|yep", "<think>no</think> YEP ", "correct"),
        (r"a.b", "a\nb", "wrong"),
        (r"(?s)a.b", "a\nb", "correct"),
        (r".+", "", "no_answer"),
    ],
)
def test_regex(answer, completion, wanted):
    assert verdict("regex", answer, completion) == wanted


def test_regex_gives_up_on_a_text_that_makes_it_backtrack():
    begun = time.monotonic()
    assert verdict("regex", "(a+)+b", "a" * 5000) == "timeout"
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    ("verifier", "answer", "says"),
    [
        ("gsm8k", "many", "answer is 'many', expected a number or `#### number`"),
        ("numeric", "inf", "answer is 'inf', expected a finite number"),
        ("choice", "all of them", "expected a letter such as B or \\(B\\)"),
        ("regex", "(", "answer is no regular expression"),
        ("math", " ", "answer is empty"),
    ],
)
def test_an_answer_that_cannot_be_compared_is_refused_with_its_place(verifier, answer, says):
    with pytest.raises(RecordError, match=f"r.jsonl:1: .*{says}"):
        verdict(verifier, answer, "x")
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is missing"):
        load_check(verifier)(Record({"completion": "x"}, "r.jsonl:1"))


HOSTILE = {
    "braces": "{" * 100_000,
    "open displays": r"\[" * 30_000,
    "nested parentheses": "(" * 3000 + "1" + ")" * 3000,
    "null bytes": "\x00" * 100_000,
    "right to left": "\u202e18\u202c" * 20_000,
    "spaces": "The answer is A" + " " * 50_000 + "x",
    "digits": "1" * 100_000,
    "letters": "A " * 50_000,
    "code": "__import__('os').system('touch pwned')",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    ("verifier", "answer"), [("gsm8k", "17"), ("numeric", "0.5"), ("choice", "B"), ("exact", "x"), ("regex", "x+")]
)
def test_hostile_text_ends_with_a_verdict(verifier, answer, text):
    begun = time.process_time()
    assert verdict(verifier, answer, text) in ("wrong", "no_answer")
    assert time.process_time() - begun < 1
