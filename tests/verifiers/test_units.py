"""Units by a table."""

from fractions import Fraction

import pytest

from rlvr_cli.verifiers.units import describe, named, plain_units, unit_at


def read(text):
    """The meanings of the unit that a text begins with, and what is left."""
    text = plain_units(text)
    units, end = unit_at(text, 0)
    return units, text[end:]


@pytest.mark.parametrize(
    ("text", "factor", "dimension"),
    [
        ("cm", Fraction(1, 100), "length"),
        ("Kilometres", Fraction(1000), "length"),
        ("µm", Fraction(1, 10**6), "length"),
        ("KM", Fraction(1000), "length"),
        ("square feet", Fraction("0.3048") ** 2, "area"),
        ("meters squared", Fraction(1), "area"),
        ("cubic centimeters", Fraction(1, 10**6), "volume"),
        ("ml", Fraction(1, 10**6), "volume"),
        ("km/h", Fraction(1000, 3600), "speed"),
        ("miles per hour", Fraction("1609.344") / 3600, "speed"),
        ("m s^{-1}", Fraction(1), "speed"),
        ("kg·m/s²", Fraction(1000), "length·mass·time^-2"),
        ("N m", Fraction(1000), "length^2·mass·time^-2"),
        (r"\text{ J}/(\text{kg}\cdot\text{K})", Fraction(1), "length^2·temperature^-1·time^-2"),
        ("W/m^2/K", Fraction(1000), "mass·temperature^-1·time^-3"),
        ("min", Fraction(60), "time"),
        (r"\%", Fraction(1, 100), "a ratio"),
        ("percentage points", Fraction(1, 100), "a ratio"),
        ("MB", Fraction(8 * 10**6), "data"),
    ],
)
def test_factor_and_dimension(text, factor, dimension):
    units, rest = read(text)
    assert rest == ""
    assert (units[0].factor, describe(units[0].dimension)) == (factor, dimension)


@pytest.mark.parametrize("text", ["apples", "in total", "at all", "a day", "dollarsign", "x", ""])
def test_other_words_are_no_units(text):
    assert read(text) == ((), text)


def test_a_unit_ends_where_the_words_begin():
    assert read("m for each")[1] == " for each"
    assert read("kg. A dog")[1] == ". A dog"
    assert read("in.")[1] == "."
    assert read("m/apple")[1] == "/apple"


def test_words_with_several_meanings_have_them_all():
    assert {describe(unit.dimension) for unit in named("pounds")} == {"mass", "GBP"}
    assert {describe(unit.dimension) for unit in named("degrees")} == {"angle", "temperature"}
    assert {describe(unit.dimension) for unit in named("ton")} == {"mass"}


def test_a_temperature_alone_is_a_point_and_in_a_compound_a_difference():
    (celsius,), _ = read("°C")
    assert celsius.base(Fraction(20)) == Fraction("293.15")
    assert celsius.value(Fraction("293.15")) == 20
    (compound,), _ = read("J/°C")
    assert compound.base(Fraction(20)) == 20 * 1000


def test_a_compound_of_ambiguous_units_stays_small():
    units, _ = read("lb·lb·lb·lb·lb·lb·lb·lb·pounds·pounds·pounds·pounds·pounds·pounds·pounds")
    assert 1 <= len(units) <= 16
