import datetime
import io
import math
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.errors import UserError
from rlvr_cli.records import CHOICES, COLUMNS, Record
from rlvr_cli.streams import parquet
from rlvr_cli.streams.inputs import Source, read
from rlvr_cli.streams.jsonl import BadLine, dumps
from rlvr_cli.streams.outputs import FileOutput, format_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INT64 = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KNOWN = {
    "string": TEXT,
    "int": INT64,
    "float": FLOATS,
    "bool": st.booleans(),
    "ids": st.lists(st.integers(0, 2**31 - 1), max_size=4),
    "logprobs": st.lists(st.floats(-1e4, 0, width=32), max_size=4),
    "strings": st.lists(TEXT, max_size=3),
    "messages": st.lists(st.fixed_dictionaries({"role": TEXT, "content": TEXT}), max_size=3),
    "json": JSON,
}
KNOWN_COLUMNS = {
    name: st.sampled_from(CHOICES[name]) if name in CHOICES else KNOWN[kind] for name, kind in COLUMNS.items()
}
UNKNOWN_NAMES = TEXT.filter(lambda name: name not in COLUMNS)
# each unknown column draws from one strategy, so that columns of one type are met as often as mixed ones
UNKNOWN_VALUES = st.sampled_from(
    [st.booleans(), INT64, FLOATS, TEXT, JSON, st.lists(INT64), st.lists(TEXT), st.lists(FLOATS), st.just([])]
)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    known = draw(st.lists(st.sampled_from(sorted(KNOWN_COLUMNS)), max_size=6))
    unknown = draw(st.dictionaries(UNKNOWN_NAMES, UNKNOWN_VALUES, max_size=4))
    columns = {**{name: KNOWN_COLUMNS[name] for name in known}, **unknown}
    return draw(st.lists(st.fixed_dictionaries({}, optional=columns), max_size=6))


def through(path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows after they were written to `path` and read back."""
    output = FileOutput(str(path), format_of(path.name))
    output.start("test", "")
    output.write([dumps(row) + b"\n" for row in rows])
    output.commit()
    output.close()
    return [dict(item) for item in read(Source("t", path)) if isinstance(item, Record)]


def same(value: Any, other: Any) -> bool:
    """Equal to the last type: 1, 1.0 and True are three things, and -0.0 is not 0.0."""
    if type(value) is not type(other):
        return False
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(same(value[key], other[key]) for key in value)
    if isinstance(value, list):
        return len(value) == len(other) and all(map(same, value, other))
    if isinstance(value, float):
        return value == other and math.copysign(1, value) == math.copysign(1, other)
    return bool(value == other)


@settings(max_examples=150, deadline=None)
@given(rows=tables(), ending=st.sampled_from(["parquet"] * 4 + ["jsonl", "jsonl.gz", "jsonl.zst"]))
def test_any_record_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], ending: str
) -> None:
    path = tmp_path_factory.mktemp("t") / f"records.{ending}"
    expected = [{key: value for key, value in row.items() if value is not None} for row in rows]
    found = through(path, rows)
    assert len(found) == len(expected)
    assert all(map(same, found, expected)), (found, expected)


def written(rows: Iterable[dict[str, Any]]) -> pa.Table:
    buffer = io.BytesIO()
    parquet.write(lambda: [Record(row, f"out:{number}") for number, row in enumerate(rows, 1)], buffer)
    return pq.read_table(io.BytesIO(buffer.getvalue()))


def test_known_columns_have_one_type_and_come_first() -> None:
    row = {"mine": 1, "reward": 1, "completion_token_ids": [5], "logprobs": [-0.5], "problem_id": "p", "stop": []}
    table = written([row])
    assert table.column_names == ["problem_id", "completion_token_ids", "logprobs", "stop", "reward", "mine"]
    assert [str(field.type) for field in table.schema] == [
        "string",
        "list<element: int32>",
        "list<element: float>",
        "list<element: string>",
        "double",
        "int64",
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "bool"),
        ([1, -5], "int64"),
        ([1.5, 2.0], "double"),
        (["a", ""], "string"),
        ([[1], [], [2, 3]], "list<element: int64>"),
        ([["a"], []], "list<element: string>"),
        ([1, 2.5], "json"),
        ([1, True], "json"),
        ([[1, 2.5]], "json"),
        ([[1, None]], "json"),
        ([[], []], "json"),
        ([[], 1], "json"),
        ([2**63], "json"),
        ([{"a": 1}], "json"),
        ([[[1]]], "json"),
    ],
)
def test_an_unknown_column_of_one_type_keeps_it_and_any_other_is_json(values: list[Any], kind: str) -> None:
    field = written({"mine": value} for value in values).schema.field("mine")
    marked = b"rlvr:json" in (field.metadata or {})
    assert ("json" if marked else str(field.type)) == kind
    if marked:
        assert field.type == pa.string()


def test_a_type_that_changes_late_is_found_before_the_first_row_group() -> None:
    rows: list[dict[str, Any]] = [{"mine": 1}] * (parquet.ROWS_WRITTEN + 5) + [{"mine": "one"}]
    table = written(rows)
    assert table.num_rows == len(rows)
    assert table.column("mine").to_pylist()[-1] == '"one"'


def test_no_record_at_all_is_a_valid_file() -> None:
    assert written([]).num_rows == 0
    assert written([{}, {}]).num_rows == 2


def test_a_value_that_does_not_fit_names_place_and_column() -> None:
    with pytest.raises(UserError, match=r'out:2: reward is "yes", expected a number'):
        written([{"reward": 1.0}, {"reward": "yes"}])


def foreign(path: Path, table: pa.Table) -> list[Any]:
    pq.write_table(table, path)
    return list(read(Source("theirs.parquet", path)))


def test_dates_and_times_of_others_become_iso_strings(tmp_path: Path) -> None:
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=datetime.UTC)
    table = pa.table({"day": [day], "moment": [moment], "nested": [{"a": [1, None]}]})
    assert foreign(tmp_path / "f.parquet", table) == [
        {"day": "2024-02-29", "moment": "2024-02-29T12:30:01.000005Z", "nested": {"a": [1, None]}}
    ]


@pytest.mark.parametrize("value", [b"bytes", Decimal("1.5"), datetime.timedelta(1), [datetime.date(2024, 1, 1)]])
def test_a_type_that_json_cannot_hold_names_its_column(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UserError, match=r"theirs\.parquet: column image has type .*, which JSON cannot hold"):
        foreign(tmp_path / "f.parquet", pa.table({"image": [value]}))


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, math.nan], {"a": [math.nan]}])
def test_nan_is_a_bad_row_and_only_that(tmp_path: Path, value: Any) -> None:
    table = pa.table({"id": [1, 2, 3], "x": [None, value, None]})
    first, bad, third = foreign(tmp_path / "f.parquet", table)
    assert (first, third) == ({"id": 1}, {"id": 3})
    assert isinstance(bad, BadLine)
    assert bad.where == "theirs.parquet:2"
    assert bad.reason.startswith("x holds NaN")


def test_a_truncated_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    through(path, [{"a": 1}] * 100)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="corrupt or truncated Parquet"):
        list(read(Source("theirs.parquet", path)))


def test_a_column_that_is_there_twice_is_refused():
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    sink = io.BytesIO()
    pq.write_table(table, sink)
    with pytest.raises(UserError, match=r"x\.parquet: column a is there twice"):
        list(parquet.read(io.BytesIO(sink.getvalue()), "x.parquet"))


def test_text_that_is_no_json_is_corrupt():
    field = pa.field("odd", pa.string(), metadata={"rlvr:json": "1"})
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(["{oops"])], schema=pa.schema([field])), sink)
    with pytest.raises(UserError, match=r"x\.parquet: corrupt"):
        list(parquet.read(io.BytesIO(sink.getvalue()), "x.parquet"))
