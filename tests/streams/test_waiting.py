"""Records that wait in order, in memory and in a temporary file."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.records import Record
from rlvr_cli.streams.waiting import Line


@dataclass
class Work:
    """Done when told so."""

    number: int
    done: bool = False


def record_of(work, size=1000):
    return Record({"number": work.number, "text": "x" * size, "big": 10**30, "ä": [1.5, None]}, f"f:{work.number}")


def line(held=1 << 20, spooled=1 << 20, asked=None):
    def ready(work):
        if asked is not None and work.done:
            asked.append(work.number)
        return record_of(work) if work.done else None

    return Line(ready, held, spooled)


def numbers(records):
    found = list(records)
    assert all(record == record_of(Work(record["number"])) for record in found)
    assert all(record.where == f"f:{record['number']}" for record in found)
    return [record["number"] for record in found]


def test_they_leave_in_order_when_the_first_is_done():
    works = [Work(number) for number in range(3)]
    with line() as waiting:
        for work in works:
            waiting.append(work, record_of(work))
        works[1].done = True
        assert numbers(waiting.leaving()) == []
        works[0].done = True
        assert numbers(waiting.leaving()) == [0, 1]
        assert len(waiting) == 1


def test_what_is_done_and_has_to_wait_goes_to_a_file_and_comes_back_as_it_was():
    works = [Work(number, done=number > 0) for number in range(500)]
    with line(held=10_000) as waiting:
        for work in works:
            waiting.append(work, record_of(work))
            assert waiting.has_room()
        assert len(waiting._in_memory) < 10
        works[0].done = True
        assert numbers(waiting.leaving()) == list(range(500))
        assert waiting._spool._end == 0  # the file starts over


def test_what_is_not_done_stays_in_memory_and_takes_the_room():
    works = [Work(number) for number in range(10)]
    with line(held=10_000) as waiting:
        rooms = []
        for work in works:
            waiting.append(work, record_of(work))
            rooms.append(waiting.has_room())
        assert rooms[0]
        assert not rooms[-1]
        for work in works[1:]:
            work.done = True
        assert waiting.has_room()
        works[0].done = True
        assert numbers(waiting.leaving()) == list(range(10))


@pytest.mark.parametrize("spooled", [0, 5_000])
def test_a_full_file_keeps_the_rest_in_memory_and_loses_nothing(spooled):
    works = [Work(number, done=number > 0) for number in range(40)]
    with line(held=10_000, spooled=spooled) as waiting:
        for work in works:
            waiting.append(work, record_of(work))
            waiting.has_room()
        assert not waiting.has_room()
        works[0].done = True
        assert numbers(waiting.leaving()) == list(range(40))
        assert waiting.has_room()


def test_a_full_disk_is_a_full_file(monkeypatch, tmp_path):
    from rlvr_cli.streams import waiting as module

    def full(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(module.os, "pwrite", full)
    test_a_full_file_keeps_the_rest_in_memory_and_loses_nothing(1 << 20)


def test_each_is_asked_for_once():
    """Once it is there: what is told of a record, such as a failure, is counted when it is asked for."""
    asked = []
    works = [Work(number, done=number > 0) for number in range(40)]
    with line(held=10_000, spooled=20_000, asked=asked) as waiting:
        for work in works:
            waiting.append(work, record_of(work))
            waiting.has_room()
        works[0].done = True
        list(waiting.leaving())
    assert sorted(asked) == list(range(40))


@given(
    st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([0, 3_000, 10_000]), st.sampled_from([0, 4_000, 10**6])
)
def test_in_any_order_and_with_any_room_they_leave_in_the_order_they_came(seed, count, held, spooled):
    draw = random.Random(seed)
    works = [Work(number) for number in range(count)]
    left, inside, come = [], [], 0
    with line(held, spooled) as waiting:
        while come < count or inside:
            if come < count and draw.random() < 0.5:
                waiting.append(works[come], record_of(works[come]))
                inside.append(works[come])
                come += 1
            elif inside:
                inside.pop(draw.randrange(len(inside))).done = True
            waiting.has_room()
            if draw.random() < 0.5:
                left += numbers(waiting.leaving())
        left += numbers(waiting.leaving())
        assert not waiting
    assert left == list(range(count))
