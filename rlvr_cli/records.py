"""The record: its columns, the checks a stage makes of them, and every id and seed.

A record is one flat JSON object. Null and absent are one: a reader drops nulls, so a stage tests `"reward" in record`.
"""

import hashlib
import math
import sys
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from rlvr_cli.errors import RecordError


class Record(dict[str, Any]):
    """A record that remembers where it was read, as `file:line`, for messages to people."""

    __slots__ = ("where",)

    def __init__(self, columns: Iterable[Any] | dict[str, Any] = (), where: str = "record") -> None:
        super().__init__(columns)
        self.where = where

    def extended(self, **columns: Any) -> "Record":
        """A copy with more columns, from the same place."""
        return Record({**self, **columns}, self.where)


# Every known column and its type. Parquet stores each with one fixed Arrow type (streams/parquet.py).
COLUMNS: dict[str, str] = {
    # problem
    "problem_id": "string",
    "prompt": "string",
    "messages": "messages",
    "answer": "string",
    "verifier": "string",
    "source": "string",
    "parent_id": "string",
    "root_id": "string",
    "generation": "int",
    "operator": "string",
    "select_reason": "string",
    # rollout
    "policy_id": "string",
    "policy_step": "int",
    "model": "string",
    "group_id": "string",
    "sample_index": "int",
    "round": "int",
    "group_size": "int",
    "rollout_id": "string",
    "stream": "string",
    "prompt_token_ids": "ids",
    "completion_token_ids": "ids",
    "logprobs": "logprobs",
    "completion": "string",
    "finish_reason": "string",
    "tokens_exact": "bool",
    "temperature": "float",
    "top_p": "float",
    "top_k": "int",
    "min_p": "float",
    "stop": "strings",
    "max_tokens": "int",
    "seed": "int",
    # branch and pivot
    "pivot_id": "string",
    "parent_rollout_id": "string",
    "prefix_len": "int",
    "depth": "float",
    "recoverability": "float",
    "utility": "float",
    # scored
    "verdict": "string",
    "reward": "float",
    "extracted": "string",
    "verifier_detail": "json",
    "shaping": "float",
    # statistics
    "n": "int",
    "n_correct": "int",
    "pass_rate": "float",
    "pass_rate_low": "float",
    "pass_rate_high": "float",
    "bucket": "string",
}

CHOICES = {
    "stream": ("main", "branch"),
    "finish_reason": ("stop", "length", "error"),
    "verdict": ("correct", "wrong", "no_answer", "truncated", "timeout", "error"),
}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_float(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_float32(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and -3.4e38 < value < 3.4e38


def _are_ids(value: Any) -> bool:
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        return False
    try:
        packed = array("i", value).tobytes()
    except OverflowError:
        return False
    return packed[_HIGH::4].isascii()  # the highest bit, the sign, is set in none of them


def _are_logprobs(value: Any) -> bool:
    if not isinstance(value, list) or not set(map(type, value)) <= {float, int}:
        return False
    try:
        if math.hypot(*value) < 3.4e38:  # then each of them is, and a number
            return True
    except OverflowError:
        return False
    return all(map(_is_float32, value))


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(turn, dict)
        and set(turn) == {"role", "content"}
        and isinstance(turn["role"], str)
        and isinstance(turn["content"], str)
        for turn in value
    )


_HIGH = 3 if sys.byteorder == "little" else 0  # the place of the highest of an integer's four bytes

_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "int": ("an integer", _is_int),
    "float": ("a number", _is_float),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "ids": ("a list of token ids", _are_ids),
    "logprobs": ("a list of numbers", _are_logprobs),
    "strings": (
        "a list of strings",
        lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    ),
    "messages": ('a list of {"role": string, "content": string}', _is_messages),
    "json": ("any JSON", lambda value: True),
}


def check_columns(record: Record, required: Iterable[str] = (), remedy: str = "") -> None:
    """Check the type of every known column that is there, and that the required ones are.

    Raises RecordError naming place, column and `remedy` (such as `run rlvr verify on it first`).
    """
    hint = f"; {remedy}" if remedy else ""
    for name in required:
        if record.get(name) is None:
            raise RecordError(f"{record.where}: {name} is missing{hint}")
    for name, value in record.items():
        kind = COLUMNS.get(name)
        if kind is None or value is None:
            continue
        wanted, fits = _TYPES[kind]
        if not fits(value):
            if name == "answer" and _is_float(value):  # as many data sets have it
                hint = f'; write "{value}"' + hint
            raise RecordError(f"{record.where}: {name} is {_shown(value)}, expected {wanted}{hint}")
        if name in CHOICES and value not in CHOICES[name]:
            raise RecordError(f"{record.where}: {name} is {_shown(value)}, expected one of {', '.join(CHOICES[name])}")


def check_problem(record: Record) -> None:
    """A problem has exactly one of `prompt` and `messages`."""
    check_columns(record)
    if ("prompt" in record) == ("messages" in record):
        found = "both prompt and messages are there" if "prompt" in record else "prompt is missing"
        raise RecordError(f"{record.where}: {found}; a problem has exactly one of prompt and messages")
    if record.get("messages") == []:
        raise RecordError(f"{record.where}: messages is empty; give at least one turn")


def _shown(value: Any) -> str:
    try:
        text = orjson.dumps(value, default=repr).decode()
    except TypeError:  # beyond 64 bits, or nested too deep
        try:
            text = repr(value)
        except RecursionError:
            return "a deeply nested value"
    return text if len(text) <= 60 else text[:57] + "..."


def stable_hash(*parts: Any) -> str:
    """The digest behind every id: 20 hex digits of BLAKE2b over the parts as one JSON list."""
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=10).hexdigest()


def problem_id(record: dict[str, Any]) -> str:
    """The record's own id, or a hash of its content: prompt or messages, answer, verifier."""
    given = record.get("problem_id")
    if isinstance(given, str):
        return given
    content = record.get("messages") or record.get("prompt")
    return stable_hash(content, record.get("answer"), record.get("verifier"))


def group_id(policy_id: str | None, policy_step: int, run_seed: int, problem: str) -> str:
    """The id of a main group."""
    return stable_hash(policy_id, policy_step, run_seed, problem)


def rollout_id(group: str, sample_index: int) -> str:
    """The id of one sample of a group."""
    return stable_hash(group, sample_index)


def pivot_id(rollout: str, prefix_len: int, policy_id: str | None, policy_step: int) -> str:
    """The id of a pivot of a rollout, and of the group of branches that this policy samples from it."""
    return stable_hash(rollout, prefix_len, policy_id, policy_step)


def sample_seed(run_seed: int, policy_step: int, group: str, sample_index: int) -> int:
    """The seed of one sample, in [0, 2^31). It knows nothing of batch size, sharding or order."""
    return derived_seed("sample", run_seed, policy_step, group, sample_index)


def derived_seed(*parts: Any) -> int:
    """A seed in [0, 2^31) for one purpose; the parts name the purpose."""
    return int(stable_hash(*parts), 16) % 2**31


def in_shard(problem: str, index: int, count: int) -> bool:
    """Whether a problem belongs to part `index` (from 0) of `count`."""
    return int(stable_hash("shard", problem), 16) % count == index
