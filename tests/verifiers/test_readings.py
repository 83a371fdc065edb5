"""Answers taken apart: numbers, units, names, dates, unions."""

from fractions import Fraction

import pytest

from rlvr_cli.verifiers.dates import date
from rlvr_cli.verifiers.intervals import union
from rlvr_cli.verifiers.latex import canonical, unwrapped
from rlvr_cli.verifiers.readings import plain_number, reading, units_fit


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7,500", -7500), ("7.50", Fraction(15, 2)), (".5", Fraction(1, 2)), ("7.", 7), ("3/4", Fraction(3, 4))]
    + [(r"-\frac{3}{4}", Fraction(-3, 4)), (r"\dfrac34", Fraction(3, 4)), (r"\frac{-3}{4}", Fraction(-3, 4))]
    + [(text, None) for text in ("7,50", "1,2,3", "3/0", "7x", "", "-", "1 2", "0,500", "٣", "1" * 300, "1e5")],
)
def test_plain_numbers(text, value):
    assert plain_number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"7 \text{ cm}", "7"),
        (r"15\mbox{ cm}^2", "15"),
        ("64 square feet", "64"),
        (r"30^\circ", "30"),
        (r"\$18.90", "18.90"),
        (r"\frac{1}{3} \text{ metres}", r"\frac{1}{3}"),
        (r"3\pi \text{ cm}^3", r"3\pi"),
        (r"5 \mathrm{~m/s}", "5"),
    ],
)
def test_a_unit_is_taken_off(text, value):
    it = reading(text)
    assert it.value == value
    assert it.units


@pytest.mark.parametrize(
    "text", [r"\sin 30^\circ", "2x", "3ab", r"x \text{ and } y", r"7\%", r"2 \text{ if } x > 0", "70 mod 3", "7!"]
)
def test_what_is_no_unit_stays(text):
    assert reading(text).units == ()
    assert len(reading(text).value) > 1


def test_units_that_fit():
    kilogram, gram, metre = (reading(rf"1 \text{{ {unit}}}").units for unit in ("kg", "g", "m"))
    assert units_fit(gram, kilogram) == 1000
    assert units_fit(gram, gram) == 1
    assert units_fit(gram, metre) is None


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("x = 5", "x", "5"),
        ("x_{1} = 5", "x_1", "5"),
        (r"x \in [1, 2]", "x", "[1, 2]"),
        ("x = y = 5", "", "x = y = 5"),
        (r"n^2 \text{ for all } n", "", "n^2"),
        ("f(x) = 2", "", "f(x) = 2"),
    ],
)
def test_names_and_conditions(text, name, value):
    it = reading(text)
    assert (it.name, it.value) == (name, value)


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("3, 5", True),
        ("3 and 5", True),
        (r"3 \text{ or } 5", True),
        (r"\pm 3", True),
        (r"\{3\}", True),
        ("3; 5", True),
        ("(3, 5)", False),
        ("7,500", False),
        (r"7,\!500", False),
        ("7{,}500", False),
        ("x = 3", False),
        ("Oregon", False),
    ],
)
def test_several(text, several):
    assert reading(text).several is several


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("May 5, 2020", (2020, 5, 5)), ("5 May 2020", (2020, 5, 5)), ("2020-05-05", (2020, 5, 5)), ("May 5th", (0, 5, 5))]
    + [("Tuesday, May 5, 2020", (2020, 5, 5)), (r"\text{Sept. 3}", (0, 9, 3)), ("1/2/2020", ("slashed", 1, 2, 2020))]
    + [(text, None) for text in ("3/4", "May", "2020", "5", "2020 - 05 - 05", "Maybe 5")],
)
def test_dates(text, wanted):
    assert date(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x < 1 or x > 2", r"(-\infty,1)\cup (2,\infty)"),
        (r"x \le -1 \text{ or } 3 \le x", r"(-\infty,-1]\cup [3,\infty)"),
        ("0 < x < 1 or 5 > x >= 2", r"(0,1)\cup [2,5)"),
        ("x < 1 or y > 2", None),
        ("x < 1", None),
        ("1 or 2", None),
        ("x = 1 or x > 2", None),
    ],
)
def test_unions(text, wanted):
    assert union(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$7$", "7"),
        (r"\(7\)", "7"),
        ("{7}", "7"),
        ("{{7}}.", "7"),
        ("7\\", "7"),
        ("**7**", "7"),
        ("((7))", "(7)"),
        ("{1}+{2}", "{1}+{2}"),
        ("$1$ and $2$", "$1$ and $2$"),
        (r"\{7\}", r"\{7\}"),
        ("(1)(2)", "(1)(2)"),
        ("((1)+(2))", "((1)+(2))"),
    ],
)
def test_wrapping(text, wanted):
    assert unwrapped(text) == wanted


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"\left( 1, 2 \right)", "(1,2)", True),
        (r"\dfrac12", r"\frac{1}{2}", True),
        ("x + 1", "x+1", True),
        ("1 2", "12", False),
        ("1, 234", "1,234", False),
        ("4 4/9", "44/9", False),
        ("x", "X", False),
        ("No", "no", True),
    ],
)
def test_the_same_text(one, other, same):
    assert (canonical(one) == canonical(other)) is same
