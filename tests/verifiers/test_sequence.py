"""Lists in order, and sets."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import reason, verdict

from rlvr_cli.errors import RecordError


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("1, 2, 3", "[1, 2, 3]"),
        ("[1, 2, 3]", "1, 2 and 3"),
        ("[1, 2, 3]", "1, 2, and 3."),
        ("[1, 2, 3]", r"\boxed{1, 2, 3}"),
        ("[1, 2, 3]", r"\boxed{\{1, 2, 3\}}"),
        ("[1, 2, 3]", r"The answer is $\left(1, 2, 3\right)$."),
        ("[1, 2]", r"\boxed{1} and \boxed{2}"),
        ("[1, 2]", "1; 2"),
        ("[0.5, 1]", r"\boxed{\frac{1}{2}, 1.0}"),
        ("[1e-3]", "0.001"),
        ("1,234, 5", "[1234, 5]"),
        ("[1, 234]", "1,234"),
        ('["red", "green"]', "Red, Green"),
        ('["the cat", "dog"]', "a cat, the dog"),
        ('["salt and pepper", "oil"]', "salt and pepper, oil"),
        ('["a, b", "c"]', '["a, b", "c"]'),
        ("['a', 'b']", '["a", "b"]'),
        ("A → B → C", "A -> B -> C"),
        (r"A \to B", "A, B"),
        ("a, b", "- a\n- b"),
        ("a, b", "1. a\n2. b"),
        ("a, b", "a\nb"),
        ("[[1, 2], [3, 4]]", "(1, 2), (3, 4)"),
        (r"\sqrt{2}, -\sqrt{2}", r"\boxed{\sqrt{2},\ -\sqrt{2}}"),
        ("x=1, y=2", "<answer>x = 1, y = 2</answer>"),
        ("f(1, 2), g", "f(1, 2), g"),
        ("[true, null]", "[true, null]"),
        ("5", "5.0"),
        ("[]", r"\emptyset"),
        ("[]", "none"),
        ('["x or y", "z"]', "x or y, z"),
    ],
)
def test_the_same_sequence(answer, completion):
    assert verdict("sequence", answer, completion) == "correct"


@pytest.mark.parametrize(
    ("answer", "completion", "why"),
    [
        ("[1, 2, 3]", "3, 2, 1", "item 1 is 3, expected 1"),
        ("[1, 2, 3]", "1, 2", "expected 3 items, got 2"),
        ("[1, 2, 3]", "1, 2, 3, 4", "expected 3 items, got 4"),
        ("[1, 2]", "1, 1, 2", "expected 2 items, got 3"),
        ("[[1, 2], [3, 4]]", "[[1, 2], [4, 3]]", "item 2 is '[4, 3]', expected '[3, 4]'"),
        ("[1/3]", "0.333", "item 1 is 333/1000, expected 1/3"),
        ("x, y", "x or y", "several answers joined by or"),
        ("[1, 2]", r"\boxed{1} or \boxed{2}", "several answers joined by or"),
        ("[1]", "1, " * 20_000, "the list has"),
        ("[1]", "[" * 100 + "1" + "]" * 100, "item 1 is"),
    ],
)
def test_another_sequence_and_why(answer, completion, why):
    assert verdict("sequence", answer, completion) == "wrong"
    assert reason("sequence", answer, completion).startswith((why, "lists nested deeper"))


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("{1, 2, 3}", "3, 2, 1"),
        ("[1, 1, 2]", r"\boxed{\{1, 2\}}"),
        ("[1, 2]", "1, 1.0, 2"),
        ("red, blue", "Blue and red"),
        ("[[1, 2], [3, 4]]", "(3, 4) and (1, 2)"),
        ("{}", "[]"),
    ],
)
def test_the_same_set(answer, completion):
    assert verdict("set", answer, completion) == "correct"


@pytest.mark.parametrize(
    ("answer", "completion", "why"),
    [
        ("[1, 2]", "1, 2, 3", "3 is not expected"),
        ("[1, 2]", "1", "2 is missing"),
        ("{(1, 2)}", "{(2, 1)}", "'[1, 2]' is missing"),
        ("[2, 3]", r"\boxed{2} or \boxed{3}", "several answers joined by or"),
    ],
)
def test_another_set_and_why(answer, completion, why):
    assert verdict("set", answer, completion) == "wrong"
    assert reason("set", answer, completion) == why


@pytest.mark.parametrize("verifier", ["sequence", "set"])
def test_no_answer_and_no_gold(verifier):
    assert verdict(verifier, "[1]", "") == "no_answer"
    assert verdict(verifier, "[1]", "<think>1") == "no_answer"
    assert verdict(verifier, "[1]", "1, 2", finish_reason="length") == "truncated"
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is ' ', expected a list such as 1, 2, 3"):
        verdict(verifier, " ", "1")
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is no list"):
        verdict(verifier, "[" * 20 + "]" * 20, "1")


ITEMS = st.lists(
    st.integers(-(10**6), 10**6) | st.from_regex(r"[b-z]{2,8}", fullmatch=True).filter(str.isascii),
    min_size=2,
    max_size=8,
)
JOINTS = {"none", "and", "or", "to", "inf", "nan", "empty"}


@settings(deadline=None, max_examples=200)
@given(ITEMS.filter(lambda items: not JOINTS & set(map(str, items))), st.randoms(use_true_random=False))
def test_a_list_in_any_writing_is_itself_and_shuffled_only_as_a_set(items, chance):
    answer = json.dumps(items)
    texts = [str(item) for item in items]
    for text in (
        ", ".join(texts),
        "[" + ", ".join(texts) + "]",
        "; ".join(texts),
        "\n".join(f"- {it}" for it in texts),
    ):
        assert verdict("sequence", answer, text) == "correct", text
    shuffled = random.Random(chance.random()).sample(texts, len(texts))
    assert verdict("set", answer, ", ".join(shuffled)) == "correct"
    assert (verdict("sequence", answer, ", ".join(shuffled)) == "correct") == (shuffled == texts)
    assert verdict("set", answer, ", ".join(texts[1:])) == ("correct" if texts[0] in texts[1:] else "wrong")
