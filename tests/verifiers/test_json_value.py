"""JSON values, exactly, and schemas."""

import json
import sys
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judged, reason, verdict

from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import load_quick
from rlvr_cli.verifiers.json_value import difference, strict


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ('{"a": 1, "b": [1, 2]}', '{"b": [1.0, 2], "a": 1e0}'),
        ('{"a": 1}', 'Here:\n```json\n{"a": 1}\n```\nDone.'),
        ('{"a": 1}', '```json\n{"a": 2}\n```\nno, rather\n```\n{"a": 1}\n```'),  # the last block
        ('{"a": 1}', '```json\n{"a": 1}\n```\nas by\n```python\nprint(1)\n```'),  # that is JSON
        ('{"a": 1}', '```json\n{"a": 1}'),  # the fence was a stop string
        ('{"a": 1}', '<think>{"a": 2}</think> {"a": 1}'),
        ('{"a": 1}', '<answer>{"a": 1}</answer>'),
        ('{"a": 1}', r'\boxed{{"a": 1}}'),
        ('{"a": 1}', 'The answer is {"a": 1}.'),
        ('{"answer": 5}', '{"answer": 5}'),  # no statement of an answer
        (r'{"a": "\\boxed{1}"}', r'{"a": "\\boxed{1}"}'),
        ("0.1", "0.10"),
        ("[]", "[]"),
        ("null", "null"),
        ('"é"', r'"\u00e9"'),
        ("1e400", "10e399"),
    ],
)
def test_equal(answer, completion):
    assert verdict("json", answer, completion) == "correct"


@pytest.mark.parametrize(
    ("answer", "completion", "why"),
    [
        ('{"it": [{"n": "x"}, {"n": "y"}]}', '{"it": [{"n": "x"}, {"n": "z"}]}', '$.it[1].n: expected "y", got "z"'),
        ('{"a b": 1}', '{"a b": 2}', '$["a b"]: expected 1, got 2'),
        ('{"a": 1}', "{}", "$.a: missing"),
        ('{"a": 1}', '{"a": 1, "b": 2}', "$.b: not expected"),
        ("[1]", "[1, 2]", "$: expected 1 items, got 2"),
        ("[1, 2]", "[2, 1]", "$[0]: expected 1, got 2"),
        ('{"a": "5"}', '{"a": 5}', '$.a: expected "5", got 5'),
        ("true", "1", "$: expected true, got 1"),
        ("0", "false", "$: expected 0, got false"),
        ("null", "[]", "$: expected null, got a list of 0"),
        ("0.1", "0.1000000000000000001", "$: expected 0.1, got 0.1000000000000000001"),
        ('{"a": 1}', '{"a": 1, "a": 1}', 'no strict JSON: key "a" is there twice'),
        ('{"a": 1}', '{"a": NaN}', "no strict JSON: NaN is no JSON"),
        ('{"a": 1}', '{"a": 1,}', "no strict JSON"),
        ('{"a": 1}', "{'a': 1}", "no strict JSON"),
        ('{"a": 1}', '{"a": 1} or {"a": 2}', "no strict JSON"),
        ('{"a": 1}', "```json\n{\n```", "no strict JSON"),
        ("1", "1" * 100_000, "no strict JSON: an integer of 100000 digits"),
        ("1", "1e99999999999999999999999", "no strict JSON: a number with an exponent beyond all bounds"),
        ("[]", "[" * 100_000, "no strict JSON"),
        ("[]", "[" * 100_000 + "]" * 100_000, "no strict JSON: nested too deep"),
        (r'"\ud800"', r'"\ud801"', r'$: expected "\ud800", got "\ud801"'),
    ],
)  # fmt: skip
def test_different_and_where(answer, completion, why):
    assert verdict("json", answer, completion) == "wrong"
    assert reason("json", answer, completion).startswith(why)


@pytest.mark.parametrize("completion", ["I do not know.", "", '<think>{"a": 1}'])
def test_without_json_there_is_no_answer(completion):
    assert verdict("json", '{"a": 1}', completion) == "no_answer"


@pytest.mark.parametrize("completion", ['```json\n{"a": 1}', "12", "well, it is"])
def test_cut_before_its_end(completion):
    assert verdict("json", "12", completion, finish_reason="length") == "truncated"


@pytest.mark.parametrize("answer", ["", "{a}", '{"a": 1, "a": 2}', "NaN", "[" * 200 + "]" * 200])
def test_an_answer_that_is_no_json_is_refused(answer):
    with pytest.raises(RecordError, match=r"r.jsonl:1: answer is no JSON"):
        verdict("json", answer, "{}")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=200)
@given(VALUES, VALUES)
def test_a_value_equals_itself_written_anew_and_the_difference_is_as_jsons(one, other):
    completion = "```json\n" + json.dumps(one, indent=1, sort_keys=True) + "\n```"
    answer = json.dumps({"schema": True, "value": one})
    assert verdict("json", answer, completion) == "correct"
    same = difference(strict(json.dumps(one)), strict(json.dumps(other))) == ""
    assert same == (plainly(one) == plainly(other))


def plainly(value):
    """A value with numbers apart from truth values, for Python's own comparison."""
    if isinstance(value, dict):
        return {key: plainly(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plainly(item) for item in value]
    return (
        ("truth", value)
        if isinstance(value, bool)
        else Decimal(repr(value))
        if isinstance(value, int | float)
        else value
    )


def test_an_object_with_a_key_schema_is_written_with_one_that_all_fits():
    assert verdict("json", '{"schema": true, "value": {"schema": 1}}', '{"schema": 1}') == "correct"
    assert verdict("json", '{"value": 1}', '{"value": 1}') == "correct"


def test_only_values_without_a_schema_are_quick():
    quick = load_quick("json")
    assert quick(Record({"answer": "[1]", "completion": "[1]"})).verdict == "correct"
    assert quick(Record({"answer": '{"schema": {"type": "array"}}', "completion": "[1]"})) is None


def test_a_schema_without_the_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(UserError, match=r'needs the library jsonschema .*; pip install "rlvr\[json-schema\]"'):
        verdict("json", '{"schema": {"type": "array"}}', "[1]")


SCHEMA = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer", "minimum": 3}, "s": {"pattern": "^a"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("completion", "why"),
    [
        ('{"n": 4}', ""),
        ('{"n": 3.0, "s": "ab"}', ""),
        ('{"n": 2}', "does not fit the schema: $.n: 2 is less than the minimum of 3"),
        ('{"n": 3.5}', "does not fit the schema: $.n: 3.5 is not of type 'integer'"),
        ('{"n": true}', "does not fit the schema: $.n: True is not of type 'integer'"),
        ('{"n": 4, "s": "b"}', "does not fit the schema: $.s: 'b' does not match '^a'"),
        ("{}", "does not fit the schema: $: 'n' is a required property"),
    ],
)
def test_a_schema_alone(completion, why):
    pytest.importorskip("jsonschema", reason="the extra json-schema is not installed")
    it = judged("json", json.dumps({"schema": SCHEMA}), completion)
    assert (it.verdict, it.detail.get("reason", "")) == (("wrong", why) if why else ("correct", ""))


def test_a_schema_and_a_value():
    pytest.importorskip("jsonschema", reason="the extra json-schema is not installed")
    answer = json.dumps({"schema": SCHEMA, "value": {"n": 5}})
    assert verdict("json", answer, '{"n": 5}') == "correct"
    assert reason("json", answer, '{"n": 6}') == "$.n: expected 5, got 6"
    assert "does not fit" in reason("json", answer, '{"n": 2}')


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"schema": {"type": 5}}, "answer has a schema that is none"),
        ({"schema": SCHEMA, "value": {"n": 1}}, "answer has a value that does not fit its schema: \\$.n"),
        ({"schema": {"$ref": "https://schemas.invalid/x.json"}}, "answer has a schema that cannot be used"),
        ({"schema": {"pattern": "("}, "value": "x"}, "answer has a schema that"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_and_nothing_is_fetched(answer, says):
    pytest.importorskip("jsonschema", reason="the extra json-schema is not installed")
    with pytest.raises(RecordError, match=f"r.jsonl:1: {says}"):
        verdict("json", json.dumps(answer), "{}")
