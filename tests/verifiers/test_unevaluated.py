"""Formulas are read from their syntax tree, and evaluating text is stopped."""

import json
import subprocess
import sys

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.verifiers.unevaluated import EvaluationError, expression, integer, unevaluated

x, y = sympy.symbols("x y")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2 + 3*4", sympy.Integer(14)),
        ("(1 + 2)/4", sympy.Rational(3, 4)),
        ("-2**2", sympy.Integer(-4)),
        ("0.5", sympy.Float(0.5)),
        ("x**2 - y*x", x**2 - y * x),
        ("exp(x)*sin(2*x) + pi", sympy.exp(x) * sympy.sin(2 * x) + sympy.pi),
        ("2**(1/2)", sympy.sqrt(2)),
        ("+x", x),
    ],
)
def test_a_formula(text, wanted):
    assert expression(text) == wanted
    assert expression(text) == sympy.parse_expr(text)  # as the library reads it


def test_names_that_the_caller_knows_come_first():
    constant = sympy.Symbol("E")
    assert expression("E + 1", local_dict={"E": constant}) == constant + 1
    assert expression("E") == sympy.E


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "(lambda: 1)()",
        "().__class__",
        "x.is_real",
        "[1, 2][0]",
        "'text'",
        "f'{x}'",
        "exp.__globals__",
        "exp(x, evaluate=False)",
        "eval(x)",
        "Integral(x, x)",  # the problem as its own answer
        "Symbol(x)",
        "True",
        "1 if x else 2",
        "x if x else y",
        "x == y",
        "(y := 2)",
        "9**9**9",
        "x" * 3000,
        "2**(1/1000000)",
    ],
)
def test_all_else_is_no_formula(text):
    with pytest.raises(ValueError):
        expression(text)


@settings(deadline=None, max_examples=100)
@given(st.recursive(
    st.integers(0, 99).map(str) | st.sampled_from("xyz"),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda it: f"({it[0]} {it[1]} {it[2]})"),
    max_leaves=8,
))  # fmt: skip
def test_the_same_as_sympys_own_reader(text):
    assert expression(text) == sympy.parse_expr(text)


@pytest.mark.parametrize("text", ["0x1f + 2", "(3 << 2) | 1", "~5 & 0xff", "7 ^ 2 - 1", "-3 * 4", "1 << 2 >> 1"])
def test_integers(text):
    assert integer(text) == eval(text)


@pytest.mark.parametrize("text", ["1.5", "x", "abs(-1)", "2**3", "'1'", "__import__('os')"])
def test_no_integers(text):
    with pytest.raises(ValueError):
        integer(text)
    assert integer("1 << 99999999999").bit_length() < 20_000


def test_evaluating_is_stopped_also_where_the_exception_is_swallowed():
    def scorer():
        try:
            return eval("40 + 2")
        except Exception:
            return "swallowed"

    with pytest.raises(EvaluationError, match="about to evaluate text"), unevaluated():
        assert scorer() == "swallowed"
    assert scorer() == 42  # and only there


def test_what_is_no_evaluation_of_text_goes_on(tmp_path, monkeypatch):
    (tmp_path / "imported_late.py").write_text(
        "from dataclasses import dataclass\nfrom collections import namedtuple\n"
        "@dataclass\nclass One:\n    value: int\nTwo = namedtuple('Two', 'a b')\nThree = eval('1 + 2')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with unevaluated():
        import imported_late

        json.loads("[1]")
    assert imported_late.Three == 3


def test_sympys_own_reader_would_be_stopped():
    with pytest.raises(EvaluationError), unevaluated():
        sympy.parse_expr("1 + 1")


def test_without_a_scorer_the_hook_is_not_there():
    code = (
        "import sys; hooks = []; sys.addaudithook = hooks.append; import rlvr_cli.verifiers.unevaluated; print(hooks)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
