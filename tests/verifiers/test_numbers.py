"""Numbers, read without evaluating."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.verifiers.numbers import numbers, only_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", 18),
        ("-3", -3),
        ("+7", 7),
        ("−5", -5),
        ("- 5", -5),
        ("１２", 12),
        ("$1,234.50.", Fraction("1234.5")),
        (r"\$18.90", Fraction("18.9")),
        ("-$5", -5),
        ("$-5", -5),
        ("$42$", 42),
        ("70,000", 70000),
        (r"1{,}234{,}567", 1234567),
        (r"1\,234", 1234),
        (r"12,\!000", 12000),
        (".5", Fraction(1, 2)),
        ("3/4", Fraction(3, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"-\dfrac{3}{4}", Fraction(-3, 4)),
        ("3e6", 3000000),
        ("1e-10", Fraction(1, 10**10)),
        (r"3 \times 10^{8}", 3 * 10**8),
        ("50%", 50),
    ],
)
def test_read(text, value):
    assert only_number(text).value == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1/0", "1e999999999", "1" * 301, "x", "1 2", "3 + 4", "v2"])
def test_no_number(text):
    assert only_number(text) is None


def test_in_order_and_apart_from_words():
    assert [number.value for number in numbers("3 of 10, then 4.5 km (H2O, x7)")] == [3, 10, Fraction("4.5")]


@given(st.integers(-(10**30), 10**30))
def test_any_integer_with_or_without_separators(value):
    assert only_number(str(value)).value == value
    assert only_number(f"{value:,}").value == value


@pytest.mark.parametrize(
    "text", ["1" * 100_000, "1," * 50_000, "1,111" + ",111" * 25_000, "1/" * 50_000, "9" + " " * 100_000]
)
def test_hostile_text_ends_in_linear_time(text):
    begun = time.process_time()
    numbers(text)
    assert time.process_time() - begun < 1


def test_blanks_after_a_power_take_linear_time():
    began = time.monotonic()
    numbers("1*10^" + " " * 200_000 + "x")
    assert time.monotonic() - began < 5  # minutes, when two patterns share the blanks
