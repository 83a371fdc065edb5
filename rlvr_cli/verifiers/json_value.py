"""A JSON value, compared exactly, or checked against a JSON Schema, or both.

The answer is the JSON value, or `{"schema": ...}` or `{"schema": ..., "value": ...}` with a JSON Schema that the value
has to fit (a value that is itself an object with a key `schema` is written `{"schema": true, "value": {...}}`). Schemas
need the extra: pip install "rlvr[json-schema]".

The completion's value is its last fenced block that is marked `json` or not at all, else what is in its box or
`<answer>` tag, else all of it after its thinking, else what a sentence states. It is parsed strictly: a key twice, NaN,
Infinity, comments and trailing commas make it wrong, as does anything else that is no JSON; prose alone is `no_answer`.
Equal means: numbers by their exact value (1 and 1.0), texts by their characters, lists in order, keys in any order. The
reason names the first difference: `$.items[2].name: expected "x", got "y"`.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from rlvr_cli.errors import RecordError, UserError, first_line
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import find, nothing, visible
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong

DEEPEST = 100  # levels of a gold value
DIGITS = 4000  # of an integer, about what Python converts
SHOWN = 60  # characters of a value in a reason


@dataclass(frozen=True)
class Wanted:
    """What a value has to be: this value, if there is one, and of this schema, if there is one."""

    value: Any = None
    has_value: bool = True
    schema: Any = None
    has_schema: bool = False


def check(record: Record) -> None:
    """The answer is JSON, and its value fits its schema. Raises RecordError; UserError where the extra is missing."""
    check_columns(record, required=["answer"], remedy="json compares with it")
    try:
        wanted = _wanted(record["answer"])
    except ValueError as bad:
        raise RecordError(f"{record.where}: answer is no JSON ({first_line(bad)}); json compares JSON values") from bad
    if not wanted.has_schema:
        return
    library = _library()
    try:
        library.validators.validator_for(wanted.schema, library.Draft202012Validator).check_schema(wanted.schema)
    except library.SchemaError as bad:
        raise RecordError(f"{record.where}: answer has a schema that is none: {first_line(bad)[:200]}") from bad
    try:
        misfit = _misfit(record["answer"], _as_floats(wanted.value))
    except Exception as bad:  # a reference that leads nowhere, a pattern that does not compile
        raise RecordError(f"{record.where}: answer has a schema that cannot be used: {first_line(bad)[:200]}") from bad
    if wanted.has_value and misfit:
        raise RecordError(f"{record.where}: answer has a value that does not fit its schema: {misfit}")


def judge(record: Record) -> Judgement:
    """Parse, check against the schema, compare."""
    text = _stated(record)
    if isinstance(text, Judgement):
        return text
    wanted = _wanted(record["answer"])
    try:
        value = strict(text)
    except ValueError as bad:
        return wrong(text, f"no strict JSON: {first_line(bad)}")
    if wanted.has_schema and (misfit := _misfit(record["answer"], strict(text, float))):
        return wrong(text, f"does not fit the schema: {misfit}")
    reason = difference(wanted.value, value) if wanted.has_value else ""
    return wrong(text, reason) if reason else correct(text)


def quick(record: Record) -> Judgement | None:
    """The judgement, when there is no schema: a schema's patterns may backtrack."""
    return None if _wanted(record["answer"]).has_schema else judge(record)


def strict(text: str, numbers: Callable[[str], Any] = Decimal) -> Any:
    """The value of a JSON text. Raises ValueError for what JSON does not have, or has twice."""
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_float=numbers, parse_int=_integer, parse_constant=_no_constant
        )
    except RecursionError as deep:
        raise ValueError("nested too deep") from deep
    except InvalidOperation as large:
        raise ValueError("a number with an exponent beyond all bounds") from large


def difference(wanted: Any, value: Any, path: str = "$") -> str:
    """The path of the first difference and what it is; empty when the two are equal."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        for key in wanted:
            if key not in value:
                return f"{_at(path, key)}: missing"
            if reason := difference(wanted[key], value[key], _at(path, key)):
                return reason
        more = next((key for key in value if key not in wanted), None)
        return "" if more is None else f"{_at(path, more)}: not expected"
    if isinstance(wanted, list) and isinstance(value, list):
        for index, (one, other) in enumerate(zip(wanted, value, strict=False)):
            if reason := difference(one, other, f"{path}[{index}]"):
                return reason
        if len(wanted) != len(value):
            return f"{path}: expected {len(wanted)} items, got {len(value)}"
        return ""
    if _kind(wanted) == _kind(value) and wanted == value:
        return ""
    return f"{path}: expected {_shown(wanted)}, got {_shown(value)}"


def _stated(record: Record) -> str | Judgement:
    """The text that is to be JSON."""
    text = visible(record["completion"], record.get("prompt") or "")
    if text is None:
        return nothing(record, "the thinking is not closed")
    cut = record.get("finish_reason") == "length"
    block, closed = _last_block(text)
    if block is not None:
        return block.strip() if closed or not cut else nothing(record, "the last block is not closed")
    whole = text.strip()
    if whole[:1] + whole[-1:] in ("{}", "[]"):
        return whole
    found = find(record)
    if found.hedged:
        return wrong(found.text, found.reason, **found.detail)
    if found.how in ("box", "tag") and found.text is not None:
        return found.text
    if not cut and _BEGINS.match(whole):
        return whole
    return found.text if found.text is not None else nothing(record, "there is no JSON in the completion")


_BEGINS = re.compile(r"[{\[\"]|-?\d+[\d.eE+-]*\Z|(?:true|false|null)\Z")
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([^\n`]*)$", re.MULTILINE)


def _last_block(text: str) -> tuple[str | None, bool]:
    """The last fenced block that is JSON by its mark or has none, and whether it is closed."""
    found: tuple[str | None, bool] = (None, True)
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2].strip():
            if opened[2].strip().lower() in ("", "json"):
                found = text[opened.end() : fence.start()], True
            opened = None
    if opened is not None and opened[2].strip().lower() in ("", "json"):
        return text[opened.end() :], False  # its end may have been a stop string
    return found


@lru_cache(maxsize=1024)
def _wanted(answer: str) -> Wanted:
    value = strict(answer)
    if _depth(value) > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    if isinstance(value, dict) and "schema" in value and value.keys() <= {"schema", "value"}:
        schema = strict(answer, float)["schema"]
        return Wanted(value.get("value"), "value" in value, schema, has_schema=schema is not True)
    return Wanted(value)


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            item
            for it in level
            if isinstance(it, dict | list)
            for item in (it.values() if isinstance(it, dict) else it)
        ]
    return depth


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {_shown(twice)} is there twice")
    return made


def _integer(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _kind(value: Any) -> str:
    """What JSON calls the type of a value."""
    kinds = [(bool, "boolean"), (int | Decimal, "number"), (str, "text"), (list, "list"), (dict, "object")]
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isascii() and key.isidentifier() else f"{path}[{_shown(key)}]"


def _shown(value: Any) -> str:
    """A value as a reason shows it: JSON in ASCII, short."""
    if isinstance(value, Decimal):
        text = str(value)
    elif isinstance(value, dict | list):
        text = f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    else:
        text = json.dumps(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


# JSON Schema


def _library() -> Any:
    try:
        import jsonschema
    except ImportError as missing:
        raise UserError(
            'verifier json needs the library jsonschema for an answer with a schema; pip install "rlvr[json-schema]"'
        ) from missing
    return jsonschema


def _misfit(answer: str, value: Any) -> str:
    """Where and how a value does not fit the answer's schema; empty when it does."""
    from jsonschema.exceptions import best_match

    bad = best_match(_validator(answer).iter_errors(value))
    return "" if bad is None else f"{bad.json_path}: {first_line(bad)[:200]}"


@lru_cache(maxsize=1024)
def _validator(answer: str) -> Any:
    from referencing import Registry

    library = _library()
    schema = _wanted(answer).schema
    kind = library.validators.validator_for(schema, library.Draft202012Validator)
    return kind(schema, registry=Registry())  # of its own: nothing is fetched from anywhere


def _as_floats(value: Any) -> Any:
    return strict(json.dumps(value, default=float), float)
