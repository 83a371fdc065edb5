"""One number, units converted, within a tolerance."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judged, reason, verdict

from rlvr_cli.errors import RecordError


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("1000", "1e3"),
        ("1000", "1,000"),
        ("1000", r"1{,}000"),
        ("1234567", "1 234 567"),
        ("1234567", "1\u202f234\u202f567"),
        ("1234.56", "1.234,56"),
        ("3.14", "3,14"),
        ("-5", "−5"),
        ("-5", "minus 5"),
        ("4", "+4"),
        ("0.5", r"\frac12"),
        ("-3.5", r"\boxed{-\frac{7}{2}}"),
        ("3.25", "3 1/4"),
        ("3.25", "3¼"),
        ("3.25", r"\boxed{3\frac{1}{4}}"),
        ("1.23e-4", r"1.23 \times 10^{-4}"),
        ("1.23e-4", "1.23×10⁻⁴"),
        ("1.23e-4", "1.23 x 10^-4"),
        ("1.23e-4", "1.23*10**-4"),
        ("6.02e23", r"6.02 \cdot 10^{23}"),
        ("0.0001", "10^{-4}"),
        ("1e100", "10^100"),
        ("5000000", "5 million"),
        ("5", "$5$"),
        ("5", "The answer is $5."),
        ("4", "**4**"),
        ("4", "`4`"),
        ("4", "The answer is 4<|im_end|>"),
        ("42", "6*7 = 42"),
        ("42", "x ≈ 42"),
        ("42", "The answer is 42!"),
        ("42", "The answer is 42, of the 50."),
        ("4", "The answer is about 4 or so."),
        ("4", "1, 2, 3 and then 4"),
        ("4", "The answer is 4, 4"),
        ("10", "10 apples"),
    ],
)
def test_one_number_in_many_writings(answer, completion):
    assert verdict("numeric", answer, completion) == "correct"


@pytest.mark.parametrize(
    ("answer", "completion", "why"),
    [
        ("4", "3, 4", "several numbers"),
        ("4", r"\boxed{3, 4}", "several numbers"),
        ("3", "The answer is 3 apples and 4 pears", "several numbers"),
        ("4", "between 3 and 4", "several numbers"),
        ("5", r"\boxed{x=5, y=6}", "several equations"),
        ("4", "The answer is 3 or 4", "joined by or"),
        ("4", "17 or 4", "several numbers"),
        ("4", r"\boxed{3-4}", "a range"),
        ("3", "The answer is 3 to 5", "a range"),
        ("5", "3–5", "a range"),
        ("5", r"\boxed{\geq 5}", "a bound"),
        ("5", "The answer is at least 5", "a bound"),
        ("5", "The answer is more than 5.", "a bound"),
        ("5", "The answer is 5+", "a bound"),
        ("2", r"\boxed{2\pi}", "a formula"),
        ("2", r"\boxed{\sqrt{2}}", "a formula"),
        ("2", r"\boxed{x^2}", "a formula"),
        ("2", r"\boxed{2x}", "a formula"),
        ("2", r"\boxed{2^{3}}", "a formula"),
        ("5", r"\boxed{5!}", "a formula"),
        ("3", r"\boxed{3 + 4i}", "a formula"),
        ("15", r"\boxed{3 \times 5}", "a formula"),
        ("4", r"\boxed{x - 4}", "a formula"),
        ("-4", r"\boxed{x - 4}", "a formula"),
        ("1", r"\boxed{1 \pm 0.1}", "a formula"),
        ("2", "The answer is 2:30", "a ratio or time"),
        ("3", r"\boxed{(0, \infty)}", "several numbers"),
        ("3", "3,14", "expected 3"),
        ("7.75", r"\boxed{3\frac{1}{4}}", "expected 7.75"),
        ("5", "minus 5", "expected 5"),
        ("7", r"\boxed{" + "1" * 2000 + "}", "the answer has 2000 characters"),
    ],
)
def test_what_is_not_one_number_is_wrong_and_says_why(answer, completion, why):
    assert verdict("numeric", answer, completion) == "wrong"
    assert why in reason("numeric", answer, completion)


@pytest.mark.parametrize("completion", ["none", "", "nan", "1e99999", "<think>4"])
def test_without_a_number_there_is_no_answer(completion):
    assert verdict("numeric", "4", completion) == "no_answer"


def test_cut_before_its_answer():
    assert verdict("numeric", "4", "1, 2, 3, 4", finish_reason="length") == "truncated"


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("3.14", "about 3.140001", "correct"),
        ("3.14", "about 3.1401", "wrong"),
        ("1000000", "1000000.5", "wrong"),  # an integer is exact
        ("1000000.0", "1000000.5", "correct"),
        ("0.0", "0.0000005", "correct"),
        ("0", "0.0000005", "wrong"),
        ("1e-10", "1e-9", "wrong"),  # small answers are not all the same
        ("1/3", "0.333333", "correct"),
        ("1/3", "0.333", "wrong"),
    ],
)
def test_tolerance(answer, completion, wanted):
    assert verdict("numeric", answer, completion) == wanted


def test_the_record_has_its_own_tolerance():
    assert verdict("numeric", "100", "101", rel_tol=0.02) == "correct"
    assert verdict("numeric", "100", "101", rel_tol=0.001) == "wrong"
    assert verdict("numeric", "100", "101", abs_tol=1) == "correct"
    assert verdict("numeric", "100", "103", abs_tol=1, rel_tol=0.02) == "wrong"
    assert verdict("numeric", "100", "102", abs_tol=1, rel_tol=0.02) == "correct"  # the wider of the two
    assert verdict("numeric", "1", "1.3", rel_tol=0.3) == "correct"  # 0.3 as written, not the float below it
    assert verdict("numeric", "1.0", "1.0000001", abs_tol=0) == "wrong"
    assert verdict("numeric", "1 m", "104 cm", abs_tol=0.05) == "correct"  # in the answer's unit
    for name, value in (("rel_tol", "2%"), ("abs_tol", -1), ("rel_tol", float("nan")), ("abs_tol", True)):
        with pytest.raises(RecordError, match=rf"r.jsonl:1: {name} is .*, expected a number of at least 0"):
            verdict("numeric", "100", "101", **{name: value})


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("10 cm", "0.1 m", "correct"),
        ("10 cm", r"\boxed{10\text{ cm}}", "correct"),
        ("10 cm", r"\boxed{10}", "correct"),  # a missing unit is the answer's
        ("10", r"\boxed{10\ \mathrm{cm}}", "correct"),  # and that of an answer without one is the question's
        ("10 cm", "10 km", "wrong"),
        ("10 cm", "10 kg", "wrong"),
        ("10 m", "10 in total", "correct"),  # no inches
        ("3 m^2", "3 m", "wrong"),
        ("3 m²", "30000 square centimeters", "correct"),
        ("1 L", "1000 cm^3", "correct"),
        ("90 min", "1.5 hours", "correct"),
        ("90 minutes", "1 hour 30 minutes", "correct"),
        ("63 in", "5 feet and 3 inches", "correct"),
        ("3 hours", "3 days", "wrong"),
        ("5 m/s", "18 km/h", "correct"),
        ("60 mph", r"\boxed{60\ \frac{\text{mi}}{\text{h}}}", "correct"),
        ("100 N", "100 kg·m/s²", "correct"),
        ("5 kWh", "18 MJ", "correct"),
        ("3.0e8 m/s", r"3 \times 10^8 \text{ m/s}", "correct"),
        ("0.5 mol/L", "0.5 M", "correct"),
        ("$5", "5 dollars", "correct"),
        ("$5", r"\boxed{\$5}", "correct"),
        ("$5", "500 cents", "correct"),
        ("$5", "5 euros", "wrong"),
        ("20 USD", "US$20", "correct"),
        ("5000000", "$5M", "correct"),
        ("$5/hour", "5 dollars per hour", "correct"),
        ("5 lb", "5 pounds", "correct"),
        ("£5", "5 pounds", "correct"),
        ("5 kg", "5 kg (about 11 pounds)", "correct"),
        ("20 °C", "68 °F", "correct"),
        ("20 °C", "293.15 K", "correct"),
        ("20 °C", "20 degrees", "correct"),
        ("20 °C", "20 °F", "wrong"),
        ("90°", r"\boxed{90^\circ}", "correct"),
        ("90 degrees", "1.570796327 rad", "correct"),
        ("90 degrees", "1.57 rad", "wrong"),
        ("25%", "0.25", "correct"),
        ("25%", "25", "correct"),
        ("25%", "25 percent", "correct"),
        ("25%", "25 kg", "wrong"),
        ("0.25", r"25\%", "correct"),
        ("25", "25%", "correct"),
        ("0.5", "0.5%", "wrong"),
    ],
)
def test_units(answer, completion, wanted):
    assert verdict("numeric", answer, completion) == wanted


def test_the_reason_names_the_dimensions():
    assert reason("numeric", "10 cm", "10 kg") == "expected 10 cm: length, not mass"
    assert reason("numeric", "5 m/s", "5 m^2") == "expected 5 m/s: speed, not area"


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("inf", r"\boxed{\infty}", "correct"),
        ("inf", "infinity", "correct"),
        ("inf", r"-\infty", "wrong"),
        ("-inf", "negative infinity", "correct"),
        ("4", "infinity", "wrong"),
        ("inf", "1e300", "wrong"),
        ("nan", "nan", "wrong"),
        ("nan", "4", "wrong"),
    ],
)
def test_infinity_equals_itself_and_nan_nothing(answer, completion, wanted):
    assert verdict("numeric", answer, completion) == wanted


@pytest.mark.parametrize(
    "answer", ["many", "3 or 4", "3-5", "3, 4", "14:30", r"2\pi", "> 3", "", "see 4 below, please"]
)
def test_an_answer_that_is_not_one_number_is_refused(answer):
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is .*, expected one number"):
        verdict("numeric", answer, "4")


LENGTHS = {
    "m": Fraction(1),
    "cm": Fraction(1, 100),
    "km": Fraction(1000),
    "inches": Fraction(254, 10000),
    "ft": Fraction(3048, 10000),
}


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 10**6), st.sampled_from(sorted(LENGTHS)), st.sampled_from(sorted(LENGTHS)))
def test_a_length_in_any_unit_is_itself_and_nothing_near(value, one, other):
    converted = value * LENGTHS[one] / LENGTHS[other]
    written = f"{converted.numerator}/{converted.denominator} {other}"
    assert verdict("numeric", f"{value} {one}", rf"\boxed{{{written}}}") == "correct"
    longer = f"{converted.numerator + 1}/{converted.denominator} {other}"
    assert verdict("numeric", f"{value} {one}", rf"\boxed{{{longer}}}") == "wrong"


@settings(deadline=None, max_examples=200)
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4))
def test_a_decimal_equals_itself_in_every_writing(value):
    for text in (
        f"{value}",
        f"{value:,}",
        f"{value:e}",
        f"{value:+}",
        rf"\boxed{{{value}}}",
        f"The answer is {value}.",
    ):
        it = judged("numeric", str(value), text)
        assert it.verdict == "correct", (text, it)
