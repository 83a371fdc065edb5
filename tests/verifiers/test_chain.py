"""Every line of a chain has to follow."""

import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.tiny.chains import parse_prompt, render_derivation, solve
from rlvr_cli.verifiers import load
from rlvr_cli.verifiers.chain import check

PROMPT = "Start 2 9 . A: - 4 . B: + 6 . C: double . =>"
RIGHT = "A: - 4 on 2 9 = 2 5 . B: + 6 on 2 5 = 3 1 . C: double on 3 1 = 6 2 . Answer 6 2"
LUCKY = "A: - 4 on 2 9 = 2 4 . B: + 6 on 2 4 = 3 1 . C: double on 3 1 = 6 2 . Answer 6 2"


def judge(completion, verifier="chain", **columns):
    return load(verifier)(Record({"prompt": PROMPT, "completion": completion, "finish_reason": "stop", **columns}))


def test_the_fixture_is_the_one_derivation():
    chain = parse_prompt(PROMPT)
    assert " ".join(render_derivation(chain, solve(chain))) == RIGHT


@pytest.mark.parametrize("completion", [RIGHT, f"\n {RIGHT.replace(' ', '  ')}\n"])
def test_right_whatever_its_white_space(completion):
    it = judge(completion)
    assert (it.verdict, it.reward, it.extracted) == ("correct", 1.0, "6 2")


def test_the_reason_names_the_first_wrong_line_and_what_it_should_be():
    it = judge(LUCKY)
    assert (it.verdict, it.reward, it.extracted) == ("wrong", 0.0, "6 2")
    assert it.detail["reason"] == "line 1 is 'A: - 4 on 2 9 = 2 4 .' and should be 'A: - 4 on 2 9 = 2 5 .'"
    assert it.detail["line"] == 1


@pytest.mark.parametrize(
    "completion",
    [
        RIGHT.replace("Answer 6 2", "Answer 6 3"),
        RIGHT.replace("C: double on 3 1 = 6 2 . ", ""),
        RIGHT + " .",
        RIGHT + " Answer 6 2",
        "Answer 6 2",
        RIGHT + " " + RIGHT,
        "junk . " + RIGHT,
    ],
)
def test_wrong(completion):
    assert judge(completion).verdict == "wrong"


@pytest.mark.parametrize("words", range(len(RIGHT.split())))
def test_a_beginning_is_no_answer(words):
    completion = " ".join(RIGHT.split()[:words])
    assert judge(completion).verdict == "no_answer"
    assert judge(completion, finish_reason="length").verdict == "truncated"


def test_a_cut_derivation_names_its_wrong_line_too():
    it = judge("A: - 4 on 2 9 = 2 4 . B: 2 4", finish_reason="length")
    assert it.verdict == "truncated"
    assert "should be 'A: - 4 on 2 9 = 2 5 .'" in it.detail["reason"]


def test_chain_answer_is_satisfied_by_luck():
    assert judge(LUCKY, "chain-answer").verdict == "correct"
    assert judge("Answer 6 2", "chain-answer").verdict == "correct"
    assert judge("Answer 6 3", "chain-answer").verdict == "wrong"
    assert judge("Answer 6", "chain-answer", finish_reason="length").verdict == "truncated"
    assert judge("C: double", "chain-answer").verdict == "no_answer"


def test_the_problem_may_be_the_last_turn_of_the_user():
    messages = [{"role": "system", "content": "Count."}, {"role": "user", "content": PROMPT}]
    assert load("chain")(Record({"messages": messages, "completion": RIGHT})).verdict == "correct"


def test_another_problem_is_refused_with_its_place():
    with pytest.raises(RecordError, match=r"p.jsonl:3: prompt is no chain: .*; name another verifier"):
        check(Record({"prompt": "What is 1 + 1?"}, "p.jsonl:3"))


@pytest.mark.parametrize("text", ["\x00" * 100_000, ". " * 50_000, "Answer " * 50_000, "\u202e" + RIGHT, "{" * 100_000])
def test_hostile_text(text):
    assert judge(text).reward == 0
