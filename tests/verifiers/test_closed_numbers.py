"""Closed numbers: read by a grammar of our own, evaluated to many digits, compared with care."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.verifiers.closed_reader import read
from rlvr_cli.verifiers.closed_shapes import same


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("2 + 3 \\cdot 4", 14),
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2^{-3}", Fraction(1, 8)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"\frac34", Fraction(3, 4)),
        (r"2\frac{1}{2}", Fraction(5, 2)),
        (r"-2\frac{1}{2}", Fraction(-5, 2)),
        (r"\sqrt{49}", 7),
        (r"\sqrt[3]{27}", 3),
        ("5!", 120),
        (r"\binom{6}{2}", 15),
        (r"2(3+4)", 14),
        (r"\left(\frac{1}{2}\right)^3", Fraction(1, 8)),
        ("1.25", Fraction(5, 4)),
        (r"6 / 4", Fraction(3, 2)),
        (r"90^\circ", 90),
        ("5 - -2", 7),
    ],
)
def test_exact_values(text, value):
    assert read(text).number.exact == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"3\sqrt{13}", r"\sqrt{117}"),
        (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt2}{2}"),
        (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}"),
        (r"e^{i\pi/3}", r"\frac{1}{2}+\frac{\sqrt{3}}{2}i"),
        (r"\sin\frac{\pi}{6}", r"\frac{1}{2}"),
        (r"\log_{2}(8)", "3"),
        (r"\ln(e^2)", "2"),
        (r"\frac{\ln(8)}{\ln(2)}", "3"),
        (r"1 \pm \sqrt{19}", r"1-\sqrt{19}, 1+\sqrt{19}"),
        ("3, -5", "-5, 3"),
        (r"\{1, 2\}", r"\{2, 1\}"),
        (r"(0, \frac{\pi}{2}]", r"(0, 0.5\pi]"),
        (r"(-\infty, 2) \cup (3, \infty)", r"(3, \infty) \cup (-\infty, 2)"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\left[\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right]"),
        (r"\frac{1}{2004!}", r"\frac{1}{2004 \cdot 2003!}"),
    ],
)
def test_equal(one, other):
    assert same(read(one), read(other)) is True


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
        ("10^{40}", "10^{40} + 1"),
        ("4", r"4\sqrt{2}"),
        ("7", "7^{7^{7^{7^{7}}}}"),
        ("7", r"\frac{7^{7^{7^{7^{7}}}} - 7}{16}"),
        ("7", "((8!)!)!"),
        ("(1, 2)", "(2, 1)"),
        ("3, 5", "3, 6"),
        ("5", "3, 5"),
        ("5", "(3, 5)"),
        (r"\infty", r"-\infty"),
        (r"e^{\pi\sqrt{163}}", "262537412640768744"),  # they share thirty digits
    ],
)
def test_different(one, other):
    assert same(read(one), read(other)) is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\sqrt{2} - \sqrt{2}", "0"),
        (r"\sin(\pi)", "0"),
        (r"\sqrt{10^{60}+1}", "10^{30}"),
        (r"10^{60} + \sqrt{2}", r"10^{60} + \sqrt{3}"),
        ("2^{5000}", "2^{5000} + 1"),
        ("0.333", r"\frac{1}{3}"),
        ("9^{9^{9^{9}}}", "8^{8^{8^{8^8}}}"),
        ("(1, 2)", "[1, 2]"),
        ("1, 1, 2", "1, 2"),
    ],
)
def test_not_certain(one, other):
    assert same(read(one), read(other)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "2x",
        "1/2\\pi",
        r"\sqrt12",
        "2^10",
        "2 3",
        r"3\frac{5}{4}",
        r"2 \cdot 3\frac{1}{2}",
        r"\log 2",
        r"\log(2)",
        "1/0",
        "0^0",
        r"(-8)^{1/3}",
        "5!!",
        "2^{3",
        "(1, 2",
        "5-",
        "()",
        r"\frac{1}",
        r"\sin^2(1)",
        r"\sin 2\pi",
        "|3|",
        "3.5!",
        r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}",
        r"\begin{pmatrix} 1 & 2 \\ 3 \end{pmatrix}",
        "a = 5",
        r"5\%",
        "__import__",
        "1" * 401,
        "(" * 30 + "1" + ")" * 30,
        r"\pm 1 \pm 2",
        "1^{\\infty}",
    ],
)
def test_refused(text):
    assert read(text) is None


def test_letters_have_a_value_at_the_point():
    def differ(one, other):
        return same(read(one, letters=True), read(other, letters=True))

    assert differ("x^2 - 1", "(x-1)(x+2)") is False
    assert differ("x^2 - 1", "(x-1)(x+1)") is True
    assert differ("x_1 + y", "x_2 + y") is False
    assert differ(r"\theta", r"\alpha") is False
    assert read("f(x)", letters=True) is None  # a function, or a product
    assert read("2x") is None


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 50))
def test_arithmetic_is_that_of_python(a, b, c):
    assert read(rf"\frac{{{a}}}{{{c}}} + {b} \cdot ({a} - {c})").number.exact == Fraction(a, c) + b * (a - c)


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^{9^{9}}}",
        "10000000!",
        "((9!)!)!",
        r"\binom{100000000}{50000000}",
        "2^{10^{12}}",
        "9!" * 100,
        "2^{-10^{12}}",
        r"\sqrt{" * 20 + "2" + "}" * 20,
        "7+" * 199 + "7",
        r"\sin(10^{30})",
        r"e^{10^{11}}",
        "99999999!+99999998!",
    ],
)
def test_time_is_bounded(text):
    begun = time.process_time()
    read(text)
    assert time.process_time() - begun < 1
