"""Groups: the consecutive rollouts whose rewards share one baseline."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record


def by_group(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Lists of consecutive records with the same `group_id`; one group is in memory at a time."""
    for _, group in groupby(records, key=_group_id):
        yield list(group)


def is_short(group: list[Record]) -> bool:
    """Whether a group has fewer records than the `group_size` that was planned."""
    return len(group) < int(group[0].get("group_size", 0))


def _group_id(record: Record) -> str:
    if "group_id" not in record:
        raise RecordError(f"{record.where}: group_id is missing; only rollouts of rlvr rollout or resample have groups")
    return str(record["group_id"])
