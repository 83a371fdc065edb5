"""Assertions split into what the program computes and what is expected, and compared outside. No sandbox runs here."""

import ast
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.verifiers.sandbox import compare
from rlvr_cli.verifiers.sandbox.assertions import split
from rlvr_cli.verifiers.sandbox.inside import fair, values


def holds(source: str, **program) -> bool:
    """What the verdict on an assertion is, with the program's side played here."""
    test = split(source)
    assert not test.in_process
    space = {**program, "__compare__": fair.compare}
    found = []
    for kind, text in test.steps:
        if kind == "eval":
            found.append(values.encode(eval(text, space)))
        else:
            try:
                exec(text, space)
                held = True
            except AssertionError:
                held = False
            if kind == "try":
                found.append(held)
    reason, _ = compare.check(test, compare.decode(values.listed(found)))
    return reason is None


def inside(source: str) -> list[str]:
    return [text for _, text in split(source).steps]


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        ("assert add(1, 2) == 3", ["add(1, 2)"]),
        ("assert 3 == add(1, 2), 'message 3'", ["add(1, 2)"]),
        ("assert abs(half(1) - 0.5) < 1e-6", ["half(1)"]),
        ("assert not even(7)", ["even(7)"]),
        ("assert find('x') is None", ["find('x')"]),
        ("assert sorted(pair(3)) == [1, 3]", ["sorted(pair(3))"]),
        ("assert math.isclose(root(2), 1.41, rel_tol=0.01)", ["root(2)"]),
        ("assert f(3) == 9 and f(4) == 16", ["f(3)", "f(4)"]),
        ("assert -f(1) <= 5 < f(2)", ["f(1)", "f(2)"]),
        ("assert (f(1), [g(2)]) == (7, [8])", ["f(1)", "g(2)"]),
        ("assert f(1) in (5, 6)", ["f(1)"]),
        ("assert isinstance(f(1), (int, float))", ["f(1)"]),
        ("assert Solution().run([1])[0].value == 4", ["Solution().run([1])[0].value"]),
        ("wanted = [1, 2]\nassert f(5) == wanted", ["f(5)"]),
        ("data = [2, 1]\nf(data)\nassert data == [1, 2]", ["data = [2, 1]", "f(data)", "data"]),
        ("assert [f(i) for i in range(3)] == [0, 1, 4]", ["[f(i) for i in range(3)]"]),
        ("assert f(1) == Fraction(1, 2)", ["f(1)"]),
        ("from solution import f\nassert f(1) == 12", ["from solution import f", "f(1)"]),
    ],
)
def test_what_is_expected_does_not_go_inside(source, steps):
    assert inside(source) == steps
    assert not split(source).in_process


@pytest.mark.parametrize(
    "source",
    [
        "assert all(f(i) == i * i for i in range(9))",
        "for i in range(9):\n    assert f(i) == i",
        "def test_it():\n    assert f(1) == 2",
        "def check(g):\n    assert g(1) == 2\ncheck(f)",
        "assert isinstance(f(1), Thing)",
        "assert np.allclose(f(1), [2.0])",
        "assert [f(i) == i for i in range(3)] == [True] * 3",
        "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False",
        "assert max([1, 2]) == 2",  # only the program can give this a meaning
    ],
)
def test_other_shapes_say_that_they_run_in_process(source):
    assert split(source).in_process


def test_a_test_function_that_nothing_calls_is_called():
    assert inside("def test_it():\n    assert f(1) == 2")[0].endswith("test_it()")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("f(1) == 2", "asserts nothing"),
        ("def test_it(fixture):\n    assert f(1) == fixture", "nothing calls"),
        ("class TestIt:\n    def test_it(self):\n        assert f(1) == 2", "nothing calls"),
    ],
)
def test_a_test_that_would_test_nothing_is_refused(source, said):
    with pytest.raises(ValueError, match=said):
        split(source)


class Everything:
    """Equals everything, and is on the right side of every comparison."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    __hash__ = object.__hash__

    def __sub__(self, other):
        return self

    def __abs__(self):
        return self

    def __bool__(self):
        return True

    def __len__(self):
        return 3


class LyingInt(int):
    """An int that says that it equals everything."""

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "source",
    [
        "assert f() == 3",
        "assert 3 == f()",
        "assert f() != 4",
        "assert [f()] == [3]",
        "assert f() in (1, 2)",
        "assert abs(f() - 0.5) < 1e-6",
        "assert f()",
        "assert not f() == 4",
        "assert f() is True",
        "assert f() == g()",
        "assert isinstance(f(), int)",
        "assert max(f(), 3) == 3",
    ],
)
@pytest.mark.parametrize("liar", [Everything, LyingInt], ids=["object", "int"])
def test_an_object_that_answers_for_itself_passes_nothing(source, liar):
    assert not holds(source, f=liar, g=lambda: 3)


class Point:
    """A class with an equality of its own, as programs write it."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    __hash__ = None

    def __add__(self, other):
        return Point(self.x + other.x)


def test_objects_of_the_programs_own_class_are_compared_in_process():
    assert holds("assert Point(1) + Point(2) == Point(3)", Point=Point)
    assert not holds("assert Point(1) + Point(2) == Point(4)", Point=Point)
    assert not holds("assert f() == Point(4)", Point=Point, f=Everything)


def test_fair_comparisons_believe_nobody_against_another_class():
    for name in ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"):
        with pytest.raises(AssertionError):
            fair.compare(name, Everything(), 3)
        with pytest.raises(AssertionError):
            fair.compare(name, 3, Everything())
    with pytest.raises(AssertionError):
        fair.compare("In", Everything(), [1, 2])
    assert fair.compare("Eq", Point(1), Point(1))
    assert fair.compare("In", Point(1), [Point(2), Point(1)])
    assert fair.compare("Eq", Fraction(1, 2), 0.5)
    assert fair.compare("Lt", Decimal("0.1"), 1)
    assert fair.compare("NotEq", 1, 2)
    assert fair.compare("In", 3, Everything())  # a container of the program's own: its tests need it


numbers = st.integers() | st.floats() | st.booleans()
atoms = numbers | st.text() | st.binary() | st.none() | st.complex_numbers() | st.fractions() | st.decimals(places=3)
hashable = st.recursive(numbers | st.text() | st.none(), lambda inner: st.lists(inner, max_size=3).map(tuple))
anything = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(hashable, max_size=4)
        | st.dictionaries(hashable, inner, max_size=4)
    ),
    max_leaves=15,
)


def shape(value):
    """The value with its types, NaN equal to itself."""
    if isinstance(value, list | tuple):
        return type(value), [shape(item) for item in value]
    if isinstance(value, set):
        return set, sorted(map(repr, map(shape, value)))
    if isinstance(value, dict):
        return dict, [(shape(key), shape(item)) for key, item in value.items()]
    return type(value), repr(value)


@given(anything)
def test_values_come_back_as_they_went(value):
    (back,) = compare.decode(values.listed([values.encode(value)]))
    assert shape(back) == shape(value)


def test_subclasses_come_back_as_what_they_hold():
    from collections import Counter, OrderedDict, defaultdict, namedtuple
    from enum import IntEnum

    pair = namedtuple("pair", "x y")
    color = IntEnum("color", "red green")
    given = [Counter("aab"), OrderedDict(a=1), defaultdict(int, a=1), pair(1, 2), color.green, {"a": 1}.keys()]
    back = compare.decode(values.listed([values.encode(value) for value in given]))
    assert back == [{"a": 2, "b": 1}, {"a": 1}, {"a": 1}, (1, 2), 2, {"a"}]


def test_text_with_lone_surrogates_and_long_integers_come_back():
    given = ["\ud800x", 10**5000, -(2**70), "é\0"]
    assert compare.decode(values.listed([values.encode(value) for value in given])) == given


SHAPES = [
    "f(0) == {b!r}",
    "{b!r} == f(0)",
    "f(0) != {b!r}",
    "f(0) < {b!r}",
    "f(0) <= {b!r} or f(0) is None",
    "f(0) in [{b!r}, 1, 'a']",
    "f(0) is None",
    "f(0) is not None and f(0) == {b!r}",
    "not f(0)",
    "[f(0), 1] == [{b!r}, 1]",
    "(f(0),) == ({b!r},)",
    "{{'k': f(0)}} == {{'k': {b!r}}}",
    "len([f(0)]) == 1 and f(0) == {b!r}",
    "isinstance(f(0), (int, str))",
    "type(f(0)) == int",
    "-f(0) == {b!r}",
    "f(0) + 1 == {b!r}",
    "f(0) * 2 - 1 < {b!r}",
    "abs(f(0) - {b!r}) < 1e-6",
    "str(f(0)) == str({b!r})",
    "sorted([f(0), {b!r}]) == [{b!r}, f(0)]",
    "bool(f(0)) is True",
    "f(0) == f(0)",
]
plain = st.integers(-3, 3) | st.sampled_from([0.5, -1.0, True, False, None, "a", "", [1], [], (1, 2), {1: 2}, {1, 2}])


@given(st.sampled_from(SHAPES), plain, plain)
def test_the_split_verdict_is_the_one_of_plain_python(shape, value, other):
    source = "assert " + shape.format(b=other)
    try:
        exec(source, {"f": lambda _: value})
        expected = True
    except Exception:
        expected = False
    try:
        found = holds(source, f=lambda _: value)
    except Exception:  # the program's side failed: so has the test
        found = False
    assert found == expected, source


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"values": 3}',
        b'{"values": [{"i": "zz"}]}',
        b'{"values": [{"i": 3}]}',
        b'{"values": [{"s": [[]]}]}',
        b'{"values": [{"x": ["Fraction", "1e999999999"]}]}',
        b'{"values": [{"x": ["Decimal", "1e999999999"]}]}',
        b'{"values": [{"x": ["os", "1"]}]}',
        b'{"values": [{"a": 1, "b": 2}]}',
        b'{"values": [{"f": "huge"}]}',
        b'{"values": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"values": [{"s": [' + b", ".join(b'{"i": "%x"}' % (i * (2**61 - 1)) for i in range(1000)) + b"]}]}",
    ],
)
def test_what_is_no_data_is_no_value(data):
    with pytest.raises(compare.ValueProblem):
        compare.decode(data)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("assert f() ** f() > 1", "10**9"),
        ("assert f() * f() > 1", "1 << 500_000"),
        ("assert 'ab' * f() > 'a'", "10**12"),
        ("assert 1 << f() > 1", "10**12"),
        ("assert f() % 3 == 'x'", "'%999999999d'"),
        ("assert f() // 7 == 1", "1 << 3_000_000"),
    ],
)
def test_no_value_makes_the_judge_compute_without_end(source, value):
    assert not holds(source, f=lambda: eval(value))


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        (b"3\n", "3", True),
        (b"3  \r\n\r\n", "3\n", True),
        (b"a b \nc", "a b\nc\n\n", True),
        (b"", "", True),
        (b"3.0\n", "3\n", False),
        (b" 3\n", "3\n", False),
        (b"3\n4\n", "3\n", False),
        (b"\n3\n", "3\n", False),
        (b"a  b\n", "a b\n", False),
        (b"\xff\n", "\xff\n", False),
        ("é\n".encode(), "é\n", True),
    ],
)
def test_printed_text_is_compared_line_by_line(printed, expected, same):
    assert (compare.same_text(printed, expected) is None) == same


def test_values_that_json_has_stored():
    assert compare.same_json((1, (2, 3)), [1, [2, 3]])
    assert compare.same_json({1: [2]}, {"1": [2]})
    assert not compare.same_json([1, 2], [1])
    assert not compare.same_json({1: 2, "1": 3}, {"1": 3, "2": 3})


def test_a_failure_shows_what_was_found():
    test = split("assert abs(f(2) - 1.5) < 0.1")
    assert compare.check(test, [4.0]) == ("not true: abs(4.0 - 1.5) < 0.1", False)


def test_the_pure_functions_of_the_outside_are_pythons_own():
    assert holds("assert math.isclose(f(), math.pi, rel_tol=1e-3)", f=lambda: 3.1415, math=math)
    assert isinstance(split("assert f() == 3").checks[0].expression, ast.Compare)
