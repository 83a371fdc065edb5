"""The fast path of math: what it decides, how fast, and that the engine decides the same."""

import random
import timeit
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.verifiers import math as verifier
from rlvr_cli.verifiers.extraction import find
from rlvr_cli.verifiers.fast_math import counted, decide
from rlvr_cli.verifiers.math_engine import DISAGREE


def quick(answer, completion, **columns):
    return verifier.quick({"answer": answer, "completion": completion, **columns})


@pytest.mark.parametrize(
    ("answer", "completion", "verdict"),
    [
        ("18", r"so \boxed{18}", "correct"),
        ("18", r"so \boxed{17}", "wrong"),
        ("18", "9 * 2\n#### 18", "correct"),
        ("18", "The answer is 18.", "correct"),
        ("18", "<think>17</think>The answer is 18.", "correct"),
        ("1,800", r"\boxed{1800}", "correct"),
        ("0.75", r"\boxed{\frac{3}{4}}", "correct"),
        ("3/4", r"\boxed{\dfrac34}", "correct"),
        (r"\sqrt{a+b}", r"\boxed{ \sqrt{a + b} }", "correct"),
        ("18", r"\boxed{17} or \boxed{18}", "wrong"),
        ("18", r"\boxed{17 \text{ or } 18}", "wrong"),
        ("18", r"\boxed{18", "no_answer"),
        ("18", "<think> 18", "no_answer"),
    ],
)
def test_decided_without_an_engine(answer, completion, verdict):
    assert quick(answer, completion).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("18", "I get 18"),  # nothing states it
        ("1/3", r"\boxed{0.3333}"),  # a matter of rounding
        ("(y+1)^2", r"\boxed{y^2+2y+1}"),  # agrees at a point, which is no proof
        (r"|y|", r"\boxed{\sqrt{y^2}}"),
        (r"\sqrt{2} - \sqrt{2}", r"\boxed{0}"),  # all digits cancel
    ],
)
def test_left_to_the_engine(answer, completion):
    assert quick(answer, completion) is None


def test_columns_that_change_the_comparison_leave_it_to_the_engine():
    assert quick("1/3", r"\boxed{0.3}", precision=1) is None
    assert quick("x", r"\boxed{y}", strict=False) is None
    assert quick("1/3", r"\boxed{0.3}").verdict == "wrong"


def test_a_plain_answer_takes_some_microseconds():
    steps = "\n".join(f"Then {n} + {n} = {2 * n} eggs are left for the market." for n in range(8))
    for stated in ("\n#### 42", "\nThe answer is \\boxed{42}.", "\nThe answer is 42."):
        record = {"answer": "42", "completion": steps + stated, "finish_reason": "stop"}
        seconds = min(timeit.repeat(lambda record=record: verifier.quick(record), number=200, repeat=5)) / 200
        assert seconds < 100e-6  # 5 to 8 on an idle machine


@given(st.fractions(-(10**6), 10**6, max_denominator=1000), st.fractions(-(10**6), 10**6, max_denominator=1000))
@settings(max_examples=300, deadline=None)
def test_fractions_are_compared_exactly(one, other):
    def written(value: Fraction, form: int) -> str:
        sign, size = "-" if value < 0 else "", abs(value)
        forms = [str(value), f"{sign}\\frac{{{size.numerator}}}{{{size.denominator}}}", f"${value}$"]
        return forms[form]

    for form in range(3):
        assert decide(str(one), written(one, form)).right
        assert decide(str(one), written(other, form)).right == (one == other)


@given(st.integers(-(10**12), 10**12), st.integers(-5, 5))
@settings(max_examples=300, deadline=None)
def test_integers_however_they_are_written(value, more):
    for text in (f"{value:,}", f"{value}.0", f"{value}.", f"{value:,}".replace(",", "{,}"), f"{{{value}}}"):
        assert decide(str(value), text).right, text
    assert decide(str(value), str(value + more)).right == (more == 0)


@pytest.mark.parametrize(("text", "count"), [("twelve", 12), ("Forty-two", 42), ("six seven", None), ("ten two", None)])
def test_counting_words(text, count):
    assert counted(text) == count


# The engine must decide as the fast path does, whatever is written.


def _number(draw):
    a, b = draw.randint(-12, 12), draw.randint(2, 12)
    return draw.choice(
        [
            str(a),
            str(draw.randint(-99999, 9999999)),
            f"{draw.randint(1000, 9999999):,}",
            f"{a}/{b}",
            rf"\frac{{{a}}}{{{b}}}",
            f"{a / draw.choice([2, 4, 5, 8, 10]):g}",
            rf"{draw.randint(1, 9)}\frac{{{draw.randint(1, b - 1)}}}{{{b}}}",
            rf"{draw.randint(1, 5)}\sqrt{{{draw.choice([2, 3, 5, 8, 12])}}}",
            rf"\frac{{\pi}}{{{b}}}",
            rf"\sqrt{{2}}+{a}",
            f"2^{{{b}}}",
            f"{draw.randint(1, 6)}!",
            f"{b}i+1",
            rf"{b}\times 10^{{{a}}}",
            rf"\binom{{{b}}}{{2}}",
            rf"{b}\%",
            rf"\sqrt[3]{{{draw.choice([8, 9, 27])}}}",
            f"({b}+1)^2",
            rf"{b}^\circ",
            r"-\frac12",
            "e",
            rf"{b} \text{{ cm}}",
        ]
    )


def _answer(draw):
    one, other, low, high = _number(draw), _number(draw), draw.randint(-5, 0), draw.randint(1, 5)
    return draw.choice(
        [
            *[one] * 6,
            f"({one}, {other})",
            draw.choice(["[%s,%s)", "(%s,%s]", "[%s,%s]"]) % (low, high),
            f"{low}, {other}",
            rf"\{{{low}, {high}\}}",
            rf"\begin{{pmatrix}}{low} & {high}\\{low} & 2\end{{pmatrix}}",
            f"x^2+{high}",
            f"{high}x+1",
            f"x={high}",
            rf"\pm {high}",
            f"(x+1)(x-{high})",
            rf"(-\infty,{high})",
            "x^2-1",
            "2(x+1)",
        ]
    )


def _dressed(draw, text):
    return draw.choice(
        [
            text,
            text.replace(",", ", ") if "(" in text else text,
            f"${text}$",
            f"{{{text}}}",
            f"{text}.",
            text.replace("(", r"\left(").replace(")", r"\right)"),
            text.replace(r"\frac", r"\dfrac"),
        ]
    )


@pytest.mark.parametrize("seed", range(16))
def test_the_engine_decides_the_same(seed):
    draw = random.Random(seed)
    answers = [_answer(draw) for _ in range(25)]
    decided = {"correct": 0, "wrong": 0}
    for _ in range(130):
        answer = draw.choice(answers)
        text = _dressed(draw, answer if draw.random() < 0.5 else draw.choice(answers))
        record = {"answer": answer, "completion": rf"\boxed{{{text}}}"}
        early = verifier.quick(record)
        if early is None:
            continue
        decided[early.verdict] += 1
        full = verifier.by_engine(record, find(record), verifier._gold(answer), text)
        assert early.verdict == full.verdict or full.detail.get("reason") == DISAGREE, (answer, text, early, full)
    assert min(decided.values()) > 10
