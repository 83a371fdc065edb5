"""Verdicts that are taken in the parent process are cheap, whatever a policy writes."""

import json
import time

import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import VERIFIERS, load, load_check, load_quick

SIZE = 200_000
BUDGET = 2.0  # seconds of processor time; each takes less than a tenth of that
LARGE = {
    "digits": "1" * SIZE,
    "full-width digits": "１" * (SIZE // 3),
    "thousands": "1," * (SIZE // 2),
    "list": "1, " * (SIZE // 3),
    "points": "1." * (SIZE // 2),
    "slashes": "1/" * (SIZE // 2),
    "powers": r"1 \times 10^" * (SIZE // 12),
    "groups": "1 000 " * (SIZE // 6),
    "mixed": "1 1/2 " * (SIZE // 6),
    "minus": "-" * SIZE,
    "round": "(" * SIZE,
    "square": "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "braces": "{" * SIZE,
    "objects": '{"a":' * (SIZE // 5),
    "keys": json.dumps({str(number): 1 for number in range(SIZE // 12)}),
    "commas": "," * SIZE,
    "letters": "A " * (SIZE // 2),
    "options": "A. x\n" * (SIZE // 5),
    "not": "not " * (SIZE // 4),
    "spaces": "The answer is A" + " " * SIZE + "x",
    "lines": "x" + "\n \n" * (SIZE // 3) + "x",
    "combining": "a" + "\u0301\u0316" * (SIZE // 2),  # putting them in order is quadratic
    "ligatures": "\ufdfa" * (SIZE // 3),  # NFKC makes eighteen characters of each
    "dollars": "$" * SIZE,
    "backslashes": "\\" * SIZE,
    "fractions": r"\frac{" * (SIZE // 6),
    "texts": r"\text{" * (SIZE // 6),
    "boxes": r"\boxed{" * (SIZE // 7),
    "statements": "the answer is " * (SIZE // 14),
    "tags": "<answer>" * (SIZE // 8),
    "fences": "```\n" * (SIZE // 4),
    "stars": "*" * SIZE,
    "arrows": "->" * (SIZE // 2),
    "or": "or " * (SIZE // 3),
    "and": "1 and " * (SIZE // 6),
    "equations": "x=" * (SIZE // 2),
    "units": "5 m/" * (SIZE // 4),
    "per": "per " * (SIZE // 4),
    "bullets": "- a\n" * (SIZE // 4),
    "null bytes": "\x00" * SIZE,
    "right to left": "\u202e18\u202c" * (SIZE // 4),
    "code": "__import__('os').abort()",
}
# Texts just below the lengths that verifiers refuse, where the costly patterns run.
SHORT = {f"{name}, {size}": text[:size] for name, text in LARGE.items() for size in (950, 3900, 9_500)}
ANSWERS = {
    "choice": "B",
    "exact": "xyz",
    "json": '{"a": [1]}',
    "numeric": "10 cm",
    "sequence": "7, 8, 9",
    "set": "7, 8",
    "text": "some text",
}


@pytest.mark.parametrize("frame", ["{}", "<answer>{}</answer>"])
@pytest.mark.parametrize("verifier", ANSWERS)
def test_a_hostile_text_is_judged_at_once_and_is_not_right(verifier, frame):
    judge = load_quick(verifier)
    answer = ANSWERS[verifier]
    load_check(verifier)(Record({"answer": answer}))
    for name, text in [*LARGE.items(), *SHORT.items()]:
        record = Record({"answer": answer, "completion": frame.replace("{}", text), "finish_reason": "stop"})
        begun = time.process_time()
        judgement = judge(record)
        assert time.process_time() - begun < BUDGET, name
        assert judgement is None or judgement.verdict in ("wrong", "no_answer"), name


def test_who_is_quick():
    quick = {name for name in VERIFIERS if load_quick(name) is not None}
    assert quick >= {"chain", "chain-answer", "choice", "exact", "json", "numeric", "sequence", "set", "text"}
    assert not quick & {"regex", "reasoning-gym", "code"}  # what may backtrack, compute or run is for workers


def test_the_quick_judge_of_a_chains_answer_looks_at_the_answer_alone():
    record = Record({"prompt": "Start 2 9 . A: - 4 . =>", "completion": "A: - 4 on 2 9 = 9 9 . Answer 2 5"})
    assert load_quick("chain")(record).verdict == "wrong"
    assert load_quick("chain-answer")(record).verdict == "correct"


def test_the_list_is_sorted_and_says_one_line_each():
    assert list(VERIFIERS) == sorted(VERIFIERS)
    assert all(what and "\n" not in what and len(what) < 120 for what in VERIFIERS.values())


@pytest.mark.parametrize("name", sorted(VERIFIERS))
def test_every_verifier_of_the_list_loads(name):
    assert callable(load(name))
    assert callable(load_check(name))


@pytest.mark.parametrize("verifier", ["choice", "exact", "json", "numeric", "regex", "sequence", "set", "text"])
def test_a_missing_answer_is_refused_with_its_place(verifier):
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is missing"):
        load_check(verifier)(Record({"completion": "x"}, "r.jsonl:1"))


def test_an_empty_answer_is_none_for_math():
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is empty"):
        load_check("math")(Record({"answer": " ", "completion": "x"}, "r.jsonl:1"))
