from collections.abc import Iterator

import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.streams.groups import by_group, is_short


def rollouts(groups: str) -> Iterator[Record]:
    return (Record({"group_id": name, "group_size": 2}, f"r.jsonl:{line}") for line, name in enumerate(groups, 1))


def test_consecutive_records_of_one_id_are_a_group() -> None:
    groups = list(by_group(rollouts("aabcc")))
    assert [[record["group_id"] for record in group] for group in groups] == [["a", "a"], ["b"], ["c", "c"]]
    assert [is_short(group) for group in groups] == [False, True, False]


def test_one_group_is_read_at_a_time() -> None:
    source = rollouts("aabb")
    groups = by_group(source)
    next(groups)
    assert len(list(source)) == 1  # of the second group only the first record had to be seen


def test_a_record_without_group_says_where() -> None:
    with pytest.raises(RecordError, match=r"r\.jsonl:7: group_id is missing"):
        list(by_group([Record({"reward": 1}, "r.jsonl:7")]))
