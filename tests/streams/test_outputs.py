import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.errors import UsageError, UserError
from rlvr_cli.streams.jsonl import dumps
from rlvr_cli.streams.outputs import ClosedPipeError, FileOutput, StandardOutput, Unit, complete_units, format_of

PAIRS = Unit(identity=lambda record: str(record["p"]), size=lambda record: 2)


def line(problem: str, sample: int) -> bytes:
    return dumps({"p": problem, "sample": sample}) + b"\n"


def unit(problem: str) -> list[bytes]:
    return [line(problem, 0), line(problem, 1)]


def opened(path: Path, digest: str = "d", **how: bool) -> FileOutput:
    output = FileOutput(str(path), "jsonl", **how)
    output.start("test", digest)
    return output


def unfinished(path: Path, *problems: str, torn: bytes = b"") -> None:
    """Leave behind what a killed run leaves behind."""
    output = opened(path)
    for problem in problems:
        output.write(unit(problem))
    if torn:
        output.write([torn])
    output.close()


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.jsonl", "jsonl"), ("a.jsonl.gz", "jsonl.gz"), ("a.jsonl.zst", "jsonl.zst"), ("a.parquet", "parquet")],
)
def test_the_ending_names_the_format(name: str, form: str) -> None:
    assert format_of(name) == form
    assert format_of(name, "parquet") == "parquet"


@pytest.mark.parametrize("name", ["a.json", "jsonl", "a.csv", "a.gz"])
def test_an_unknown_ending_is_wrong_usage_unless_the_format_is_said(name: str) -> None:
    with pytest.raises(UsageError, match="--format"):
        format_of(name)
    assert format_of(name, "jsonl") == "jsonl"


def test_the_old_output_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old\n")
    output = opened(path)
    output.write(unit("a"))
    assert path.read_text() == "old\n"
    output.commit()
    output.close()
    assert path.read_bytes() == b"".join(unit("a"))
    assert list(tmp_path.iterdir()) == [path]  # neither work nor temporary file is left


def test_work_is_readable_while_it_is_made(tmp_path: Path) -> None:
    output = opened(tmp_path / "out.parquet")
    output.write(unit("a"))
    head, *lines = (tmp_path / ".out.parquet.partial").read_bytes().splitlines(keepends=True)
    assert head == b'{"rlvr_partial":"d","command":"test"}\n'
    assert lines == unit("a")
    output.close()


def test_resume_goes_on_after_the_last_complete_unit(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    unfinished(path, "a", "b", torn=line("c", 0) + b'{"p": "c", "sam')
    output = opened(path, resume=True)
    assert list(output.done(PAIRS)) == ["a", "b"]
    assert (output.already, output.records_already) == (2, 4)
    output.write(unit("c"))
    output.commit()
    output.close()
    assert path.read_bytes() == b"".join(unit("a") + unit("b") + unit("c"))


@given(st.integers(0, 200), st.integers(1, 3))
def test_wherever_work_is_torn_only_whole_units_count(cut: int, size: int) -> None:
    lines = [line(problem, sample) for problem in "abcd" for sample in range(size)]
    text = b"".join(lines)[:cut]
    found = list(complete_units(text.splitlines(keepends=True), Unit(PAIRS.identity, lambda record: size)))
    lengths = [sum(map(len, lines[index * size : (index + 1) * size])) for index in range(4)]
    complete = next(count for count in range(4, -1, -1) if sum(lengths[:count]) <= cut)
    assert found == [("abcd"[index], size, lengths[index]) for index in range(complete)]


def test_a_unit_that_another_interrupts_is_owed_again() -> None:
    lines = [*unit("a"), line("b", 0), *unit("c")]
    assert [identity for identity, _, _ in complete_units(lines, PAIRS)] == ["a"]


def test_resume_without_unfinished_work_starts_at_the_beginning(tmp_path: Path) -> None:
    output = opened(tmp_path / "out.jsonl", resume=True)
    assert list(output.done(PAIRS)) == []
    output.close()


def test_resume_refuses_work_on_something_else_and_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    unfinished(path, "a")
    output = FileOutput(str(path), "jsonl", resume=True)
    with pytest.raises(UserError, match=r"made with other options, inputs or policy; .* --force"):
        output.start("test", "another digest")
    output.close()
    again = opened(path, resume=True)
    assert list(again.done(PAIRS)) == ["a"]
    again.close()


def test_unfinished_work_is_neither_lost_nor_used_unasked(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    unfinished(path, "a")
    with pytest.raises(UserError, match="--resume goes on from it, --force starts over"):
        opened(path)
    output = opened(path, force=True)
    output.write(unit("z"))
    output.commit()
    output.close()
    assert path.read_bytes() == b"".join(unit("z"))


def test_work_without_a_record_is_no_work(tmp_path: Path) -> None:
    unfinished(tmp_path / "out.jsonl")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".out.jsonl.partial").write_bytes(b'{"rlvr_partial": "of a kill')
    opened(tmp_path / "out.jsonl").close()


def test_a_second_run_on_the_same_output_is_refused_at_once(tmp_path: Path) -> None:
    first = opened(tmp_path / "out.jsonl")
    for how in ({}, {"resume": True}, {"force": True}):
        with pytest.raises(UserError, match="another run is writing it"):
            opened(tmp_path / "out.jsonl", **how)
    first.close()
    opened(tmp_path / "out.jsonl").close()


def test_places_that_cannot_be_written_are_told_when_opened(tmp_path: Path) -> None:
    (tmp_path / "dir.jsonl").mkdir()
    os.mkfifo(tmp_path / "device.jsonl")  # as /dev/null is, which a rename would destroy
    for name, message in (
        (tmp_path / "missing" / "out.jsonl", "there is no directory .*missing; make it first"),
        (tmp_path / "dir.jsonl", "is a directory; name a file in it"),
        (tmp_path / "device.jsonl", "is no regular file"),
        (tmp_path / ("x" * 300 + ".jsonl"), "cannot be written"),
    ):
        with pytest.raises(UserError, match=message):
            opened(name)


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "out.jsonl"
    link.symlink_to(tmp_path / "disk" / "real.jsonl")
    output = opened(link)
    output.write(unit("a"))
    output.commit()
    output.close()
    assert link.is_symlink()
    assert (tmp_path / "disk" / "real.jsonl").read_bytes() == b"".join(unit("a"))


def test_the_same_records_make_the_same_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for now, name in enumerate(("one.jsonl.gz", "two.jsonl.gz")):
        monkeypatch.setattr("time.time", lambda now=now: now * 1000.0)
        output = FileOutput(str(tmp_path / name), "jsonl.gz")
        output.start("test", "")
        output.write(unit("a"))
        output.commit()
        output.close()
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]  # no name and no time in it
    assert gzip.decompress(contents[0]) == b"".join(unit("a"))


def test_standard_output_gets_each_unit_at_once() -> None:
    receiver, sender = os.pipe()
    output = StandardOutput(sender, "jsonl")
    output.write(unit("a"))
    assert os.read(receiver, 1000) == b"".join(unit("a"))
    os.close(receiver)
    with pytest.raises(ClosedPipeError):
        output.write(unit("b"))
    output.close()
