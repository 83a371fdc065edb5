"""Records as they are, duplicates counted and dropped on request."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from rlvr_cli.records import Record, problem_id, stable_hash
from rlvr_cli.streams.jsonl import dumps


@dataclass
class Tally:
    """What went by: records, those of them that were there before, and problems by verifier."""

    records: int = 0
    duplicates: int = 0
    verifiers: Counter[str] = field(default_factory=Counter)


def convert(records: Iterable[Record], tally: Tally, *, drop_duplicates: bool = False) -> Iterator[Record]:
    """Pass records on; count, or drop, those that stand for something that was there before.

    A rollout, and a pivot in it, is known by its ids, a problem by its `problem_id` or, without one, its content, and
    anything else by all of its columns. Memory: about a hundred bytes a distinct record.
    """
    seen: set[bytes] = set()
    for record in records:
        tally.records += 1
        if isinstance(name := record.get("verifier"), str):
            tally.verifiers[name] += 1
        key = bytes.fromhex(_what(record))
        if key in seen:
            tally.duplicates += 1
            if drop_duplicates:
                continue
        seen.add(key)
        yield record


def content_hash(record: Record) -> str:
    """A digest of all columns, as they are written."""
    return blake2b(dumps(record), digest_size=10).hexdigest()


def _what(record: Record) -> str:
    if "rollout_id" in record:
        return stable_hash("rollout", record["rollout_id"], record.get("pivot_id"))
    is_problem = "problem_id" in record or "prompt" in record or "messages" in record
    if is_problem and "n" not in record:  # rows of statistics repeat a problem, once a policy
        return stable_hash("problem", problem_id(record))
    return content_hash(record)
