from pathlib import Path

import orjson
import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.streams.jsonl import BadLine
from rlvr_cli.streams.rejects import Rejects

BAD_LINE = BadLine("in.jsonl:3", "is not valid JSON", "x" * 5000)
BAD_RECORD = Record({"reward": "yes"}, "in.jsonl:4")
ERROR = RecordError('in.jsonl:4: reward is "yes", expected a number')


def test_the_first_bad_record_stops() -> None:
    rejects = Rejects("stop")
    with pytest.raises(RecordError, match=r"^in\.jsonl:3: is not valid JSON$"):
        rejects.line(BAD_LINE)
    with pytest.raises(RecordError, match="reward"):
        rejects.record(BAD_RECORD, ERROR)


def test_bad_records_are_set_aside_with_place_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "rejects.jsonl"
    path.write_text("of an earlier run\n")
    rejects = Rejects("skip", str(path))
    rejects.line(BAD_LINE)
    rejects.record(BAD_RECORD, ERROR)
    assert path.read_text() == "of an earlier run\n"  # replaced whole, at the end
    rejects.commit()
    rejects.close()
    assert rejects.count == 2
    assert [orjson.loads(line) for line in path.read_bytes().splitlines()] == [
        {"where": "in.jsonl:3", "reason": "is not valid JSON", "text": "x" * 1000},
        {"where": "in.jsonl:4", "reason": 'reward is "yes", expected a number', "record": {"reward": "yes"}},
    ]


def test_an_unfinished_run_leaves_no_rejects(tmp_path: Path) -> None:
    rejects = Rejects("skip", str(tmp_path / "rejects.jsonl"))
    rejects.line(BAD_LINE)
    rejects.close()
    assert list(tmp_path.iterdir()) == []
