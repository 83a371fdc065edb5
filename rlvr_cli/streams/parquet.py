"""Parquet in and out. Known columns have one fixed Arrow type, unknown ones keep a scalar type or become JSON text.

A column stored as JSON text carries the field metadata `rlvr:json` and comes back exactly as it was.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.records import COLUMNS, Record, check_columns
from rlvr_cli.streams.jsonl import BadLine, dumps, loads

JSON_MARK = {b"rlvr:json": b"1"}
ROWS_READ = 64  # rows made into Python objects at a time; a row of long completions takes a megabyte of them
ROWS_WRITTEN = 8192  # rows of one row group at most, and
BYTES_WRITTEN = 16 << 20  # bytes of JSON text that make it full before

KNOWN = {
    "string": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "ids": pa.list_(pa.int32()),
    "logprobs": pa.list_(pa.float32()),
    "strings": pa.list_(pa.string()),
    "messages": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
}
SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
EMPTY_LIST = "an empty list"  # fits a list of any type
AS_JSON = "as JSON"


def read(file: IO[bytes], name: str) -> Iterator[Record | BadLine]:
    """The rows of a Parquet file as records, nulls dropped; places are `name:row`, rows from 1.

    A row that holds NaN or infinity, which JSON cannot say, is a BadLine. Raises UserError for a corrupt file and for a
    column whose type JSON cannot hold.
    """
    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        if len(set(names)) < len(names):
            twice = next(column for column in names if names.count(column) > 1)
            raise UserError(f"{name}: column {twice} is there twice; rename one")
        decoders = [(field.name, _decoder(field, name)) for field in table.schema_arrow]
        row = 0
        for batch in table.iter_batches(ROWS_READ):
            columns = [
                (column, decode(values)) for (column, decode), values in zip(decoders, batch.columns, strict=True)
            ]
            finite = all(_is_finite(values) for values in batch.columns)
            for index in range(batch.num_rows):
                row += 1
                record = Record(
                    {column: values[index] for column, values in columns if values[index] is not None}, f"{name}:{row}"
                )
                yield record if finite else _without_nan(record)
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: text that is no UTF-8 or no JSON
        raise UserError(f"{name}: corrupt or truncated Parquet ({_first_line(error)}); make the file again") from error


def _decoder(field: pa.Field, name: str) -> Callable[[pa.Array], list[Any]]:
    """What turns an Arrow array of this field into a list of JSON values."""
    kind = field.type
    if field.metadata and b"rlvr:json" in field.metadata and pa.types.is_string(kind):
        return lambda values: [None if text is None else loads(text.encode()) for text in values.to_pylist()]
    if pa.types.is_timestamp(kind):
        return lambda values: [text and text.replace(" ", "T", 1) for text in values.cast(pa.string()).to_pylist()]
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return lambda values: values.cast(pa.string()).to_pylist()
    if not _json_can_hold(kind):
        raise UserError(
            f"{name}: column {field.name} has type {kind}, which JSON cannot hold; leave it out or cast it to a string"
        )
    return lambda values: values.to_pylist()


def _json_can_hold(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_dictionary(kind):
        return _json_can_hold(kind.value_type)
    if types.is_struct(kind):
        return all(_json_can_hold(kind.field(index).type) for index in range(kind.num_fields))
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    number = types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind)
    return bool(text or number or types.is_boolean(kind) or types.is_null(kind))


def _is_finite(values: pa.Array) -> bool:
    """Whether no number anywhere in an array is NaN or infinite."""
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(values)).as_py() is not False
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _is_finite(values.flatten())
    if pa.types.is_struct(kind):
        return all(_is_finite(child) for child in values.flatten())
    if pa.types.is_dictionary(kind):
        return _is_finite(values.dictionary)
    return True


def _without_nan(record: Record) -> Record | BadLine:
    for column, value in record.items():
        if not _json_can_say(value):
            return BadLine(record.where, f"{column} holds NaN or infinity; JSON has neither, store null", repr(record))
    return record


def _json_can_say(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_json_can_say, value.values()))
    return not isinstance(value, list) or all(map(_json_can_say, value))


def write(records: Callable[[], Iterable[Record]], file: IO[bytes]) -> None:
    """Write records as one Parquet file. `records` is called twice: to find the types, then for the rows.

    Only columns that are there are written: known ones in the order of records.COLUMNS, then the others in order of
    first appearance. Raises UserError for a value that does not fit its column.
    """
    schema = _schema(records())
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _row_groups(records()):
            writer.write_table(pa.Table.from_arrays([_array(field, rows) for field in schema], schema=schema))


def _schema(records: Iterable[Record]) -> pa.Schema:
    kinds: dict[str, set[Any]] = {}
    for record in records:
        check_columns(record)
        for column, value in record.items():
            if value is not None:
                found = kinds.setdefault(column, set())
                if column not in COLUMNS and AS_JSON not in found:
                    found.add(_kind(value))
    # a table without columns has no rows either, so one column is always there
    known = [column for column in COLUMNS if column in kinds] or ([] if kinds else ["problem_id"])
    unknown = [column for column in kinds if column not in COLUMNS]
    return pa.schema(
        [_field(column, KNOWN.get(COLUMNS[column])) for column in known]
        + [_field(column, _one_type(kinds[column])) for column in unknown]
    )


def _field(column: str, kind: pa.DataType | None) -> pa.Field:
    return pa.field(column, kind) if kind is not None else pa.field(column, pa.string(), metadata=JSON_MARK)


def _kind(value: Any) -> Any:
    """The Arrow type that holds one value exactly, EMPTY_LIST, or AS_JSON."""
    if not isinstance(value, list):
        return _scalar_kind({type(value)}, [value])
    return _list_kind(value) if value else EMPTY_LIST


def _list_kind(items: list[Any]) -> Any:
    kind = _scalar_kind(set(map(type, items)), items)
    return kind if kind is AS_JSON else pa.list_(kind)


def _scalar_kind(types: set[type], items: list[Any]) -> Any:
    if len(types) != 1 or (only := next(iter(types))) not in SCALARS:
        return AS_JSON
    if only is int and (min(items) < -(2**63) or max(items) >= 2**63):
        return AS_JSON
    return SCALARS[only]


def _one_type(kinds: set[Any]) -> pa.DataType | None:
    """The one Arrow type that all of a column's values share, or None: JSON text."""
    types = kinds - {EMPTY_LIST}
    if len(types) != 1 or AS_JSON in types:
        return None
    only = next(iter(types))
    return only if EMPTY_LIST not in kinds or pa.types.is_list(only) else None


def _row_groups(records: Iterable[Record]) -> Iterator[list[Record]]:
    rows: list[Record] = []
    size = 0
    for record in records:
        rows.append(record)
        size += sum(_weight(value) for value in record.values())
        if len(rows) == ROWS_WRITTEN or size >= BYTES_WRITTEN:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _weight(value: Any) -> int:
    """About how many bytes a value takes as JSON text."""
    return 8 * len(value) if isinstance(value, list | dict) else len(value) if isinstance(value, str) else 8


def _array(field: pa.Field, rows: list[Record]) -> pa.Array:
    values = [row.get(field.name) for row in rows]
    if field.metadata:
        values = [None if value is None else dumps(value).decode() for value in values]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError) as error:
        where = rows[0].where
        raise RecordError(
            f"{where}: {field.name} does not fit {field.type}, here or below ({_first_line(error)})"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
