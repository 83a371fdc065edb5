"""One run of a command, in the process of the tests."""

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest

from rlvr_cli.commands.options import IO
from rlvr_cli.commands.run import Run
from rlvr_cli.errors import BudgetError, RecordError, RejectsError, UserError
from rlvr_cli.records import Record, check_problem, in_shard
from rlvr_cli.records import problem_id as content_id
from rlvr_cli.streams.outputs import Unit

PAIRS = Unit(identity=lambda record: str(record["problem_id"]), size=lambda record: 2)


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(f'{{"prompt":"{number} + 1 ="}}\n' for number in range(8)))
    return path


def twice(records: Iterator[Record], until: int = 99) -> Iterator[Record]:
    """A stage that samples two completions a problem, and may break down."""
    for position, record in enumerate(records):
        for index in (0, 1):
            if position == until and index:
                raise UserError("the engine broke")
            yield record.extended(sample_index=index)


def rollout(io: IO, until: int = 99, **settings: Any) -> Run:
    with Run("rollout", io, settings=settings) as run:
        run.write(twice(run.read(check_problem, unit=PAIRS), until), unit=PAIRS)
    return run


def test_a_record_gets_its_problem_id_and_keeps_its_columns(problems: Path) -> None:
    rollout(IO(["problems.jsonl"], output="out.jsonl"))
    first, *_ = map(orjson.loads, Path("out.jsonl").read_bytes().splitlines())
    assert first == {"problem_id": content_id({"prompt": "0 + 1 ="}), "prompt": "0 + 1 =", "sample_index": 0}


def test_a_resumed_run_makes_the_same_file_and_only_what_is_owed(problems: Path) -> None:
    rollout(IO(["problems.jsonl"], output="whole.jsonl"))
    with pytest.raises(UserError, match="the engine broke"):
        rollout(IO(["problems.jsonl"], output="out.jsonl"), until=5)
    assert not Path("out.jsonl").exists()
    run = rollout(IO(["problems.jsonl"], output="out.jsonl", resume=True))
    assert run.already == 5
    assert Path("out.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert sorted(map(str, Path().iterdir())) == ["out.jsonl", "problems.jsonl", "whole.jsonl"]


@pytest.mark.parametrize("change", ["settings", "input", "shard"])
def test_resume_refuses_work_of_another_call(problems: Path, change: str) -> None:
    with pytest.raises(UserError, match="the engine broke"):
        rollout(IO(["problems.jsonl"], output="out.jsonl"), until=5, seed=0)
    if change == "input":
        problems.write_text('{"prompt":"another"}\n' + problems.read_text())
    io = IO(["problems.jsonl"], output="out.jsonl", resume=True, shard=(0, 2) if change == "shard" else None)
    with pytest.raises(UserError, match="made with other options, inputs or policy"):
        rollout(io, seed=1 if change == "settings" else 0)


@pytest.mark.parametrize("kept", [slice(1, None), slice(3)], ids=["others", "fewer"])
def test_resume_from_a_pipe_refuses_other_input(problems: Path, kept: slice) -> None:
    def piped(lines: list[bytes], **how: Any) -> None:
        receiver, sender = os.pipe()
        os.write(sender, b"".join(lines))
        os.close(sender)
        try:  # through a link: the name of the pipe itself may differ from run to run
            rollout(IO([f"/dev/fd/{receiver}"], output="out.jsonl", resume=how.pop("resume", False)), **how)
        finally:
            os.close(receiver)

    lines = problems.read_bytes().splitlines(keepends=True)
    with pytest.raises(UserError, match="the engine broke"):
        piped(lines, until=5)
    with pytest.raises(UserError, match=r"made from other input than this .*; start over with --force"):
        piped(lines[kept], resume=True)
    piped(lines, resume=True)
    assert len(Path("out.jsonl").read_bytes().splitlines()) == 16


def test_shards_part_the_input(problems: Path) -> None:
    parts: list[list[str]] = []
    for index in range(3):
        rollout(IO(["problems.jsonl"], output=f"{index}.jsonl", shard=(index, 3)))
        parts.append([orjson.loads(line)["problem_id"] for line in Path(f"{index}.jsonl").read_bytes().splitlines()])
    assert sorted(chain(*parts)) == sorted([content_id({"prompt": f"{number} + 1 ="}) for number in range(8)] * 2)
    assert all(in_shard(problem, index, 3) for index, part in enumerate(parts) for problem in part)


def test_all_input_is_checked_before_the_first_record_when_a_model_waits(problems: Path) -> None:
    problems.write_text(problems.read_text() + '{"prompt": 5}\n')
    with (
        pytest.raises(RecordError, match=r"problems\.jsonl:9: prompt is 5, expected a string"),
        Run("rollout", IO(["problems.jsonl"], output="out.jsonl")) as run,
    ):
        run.read(check_problem, unit=PAIRS, before_model=True)
        pytest.fail("the model would have been loaded")


def test_input_read_twice_is_counted_once(problems: Path) -> None:
    problems.write_text(problems.read_text() + '{"prompt": 5}\n{\n')
    io = IO(["problems.jsonl"], output="out.jsonl", on_error="skip", rejects="rejects.jsonl", metrics="metrics.jsonl")
    with Run("rollout", io) as run:
        records = run.read(check_problem, unit=PAIRS, before_model=True)
        assert run.total == 8
        run.write(twice(records), unit=PAIRS)
        run.figures(accuracy=0.5)
    assert len(Path("rejects.jsonl").read_bytes().splitlines()) == 2
    [line] = map(orjson.loads, Path("metrics.jsonl").read_bytes().splitlines())
    assert line["seconds"] >= 0
    assert line["peak_mib"] > 1
    assert {name: line[name] for name in ("command", "read", "written", "rejected", "ended", "accuracy")} == {
        "command": "rollout",
        "read": 8,
        "written": 16,
        "rejected": 2,
        "ended": "ok",
        "accuracy": 0.5,
    }


def test_a_pipe_too_is_checked_to_its_end_before_the_first_record(problems: Path) -> None:
    receiver, sender = os.pipe()
    os.write(sender, problems.read_bytes())
    os.close(sender)
    with Run("rollout", IO([f"/dev/fd/{receiver}"], output="out.jsonl")) as run:
        records = run.read(check_problem, unit=PAIRS, before_model=True)
        assert run.total == 8
        run.write(twice(records), unit=PAIRS)
    os.close(receiver)
    assert len(Path("out.jsonl").read_bytes().splitlines()) == 16


def failing(error: BaseException) -> Callable[[Record], None]:
    def check(record: Record) -> None:
        raise error

    return check


@pytest.mark.parametrize(
    ("error", "ended"),
    [(UserError("no"), "failed"), (KeyboardInterrupt(), "interrupted"), (ZeroDivisionError(), "failed")],
)
def test_metrics_tell_how_a_run_ended(problems: Path, error: BaseException, ended: str) -> None:
    io = IO(["problems.jsonl"], output="out.jsonl", metrics="metrics.jsonl")
    for _ in range(2):
        with pytest.raises(type(error)), Run("verify", io) as run:
            run.write(run.read(failing(error)))
    assert [orjson.loads(line)["ended"] for line in Path("metrics.jsonl").read_bytes().splitlines()] == [ended] * 2


def test_too_many_rejects_fail_a_run_that_finished(problems: Path) -> None:
    problems.write_text(problems.read_text() + "{\n{\n")
    io = IO(["problems.jsonl"], output="out.jsonl", on_error="skip", max_rejects=1)
    with pytest.raises(RejectsError, match="2 bad records set aside, --max-rejects allows 1"):
        rollout(io)
    assert len(Path("out.jsonl").read_bytes().splitlines()) == 16


def test_a_run_that_a_budget_ends_has_a_usable_output(problems: Path) -> None:
    with (
        pytest.raises(BudgetError, match="5 minutes are over"),
        Run("x", IO(["problems.jsonl"], output="o.jsonl")) as run,
    ):
        run.write(record for record, _ in zip(run.read(check_problem), range(3), strict=False))
        run.stop("5 minutes are over")
    assert len(Path("o.jsonl").read_bytes().splitlines()) == 3


def test_what_libraries_print_is_no_record(problems: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Run("verify", IO(["problems.jsonl"])) as run:
        print("from python")
        os.system("echo from elsewhere")
        run.write(run.read(check_problem))
        run.say("8 records")
    out, err = capfd.readouterr()
    assert [set(orjson.loads(line)) for line in out.splitlines()] == [{"problem_id", "prompt"}] * 8
    assert sorted(err.splitlines()) == ["from elsewhere", "from python", "rlvr verify: 8 records"]


def test_a_command_without_records_prints_a_line(problems: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Run("train-step", IO(["problems.jsonl"], output="policy"), resumable=False, records_out=False) as run:
        assert sum(1 for _ in run.read(check_problem)) == 8
        run.print({"loss": 0.5})
    assert capfd.readouterr().out == '{"loss":0.5}\n'
    assert not Path("policy").exists()


def test_a_stage_that_leaves_a_unit_unfinished_is_a_bug_that_shows(problems: Path) -> None:
    with (
        pytest.raises(AssertionError, match="1 records owed"),
        Run("x", IO(["problems.jsonl"], output="o.jsonl")) as run,
    ):
        run.write(run.read(check_problem, unit=PAIRS), unit=PAIRS)


def test_the_stage_is_closed_when_writing_fails(problems: Path) -> None:
    closed = []

    def stage(records: Iterator[Record]) -> Iterator[Record]:
        try:
            yield from twice(records)
        finally:
            closed.append(True)

    with Run("x", IO(["problems.jsonl"], output="o.jsonl")) as run:
        run.read(check_problem)
        odd = Unit(PAIRS.identity, size=lambda record: 3)
        with pytest.raises(AssertionError):
            run.write(held := stage(run.read(check_problem)), unit=odd)
        assert closed == [True]  # and not only when the last reference to it goes
    del held


def test_empty_input_only_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("none.jsonl").touch()
    rollout(IO(["none.jsonl"], output="out.jsonl"))
    assert Path("out.jsonl").read_bytes() == b""
    assert capfd.readouterr().err == "rlvr rollout: warning: no records in none.jsonl\n"


def test_rows_of_another_layout_become_records_before_they_are_checked_and_sharded(problems: Path) -> None:
    def translate(row: Record) -> Record:
        if row["prompt"].startswith("3"):
            raise RecordError(f"{row.where}: prompt begins with 3")
        return Record({"prompt": row["prompt"].removesuffix("=")}, row.where)

    found = []
    for part in (0, 1):
        io = IO(["problems.jsonl"], output="out.jsonl", shard=(part, 2), on_error="skip", rejects="r.jsonl")
        with Run("convert", io) as run:
            found.append(list(run.read(check_problem, translate=translate)))
        [bad] = map(orjson.loads, Path("r.jsonl").read_bytes().splitlines())
        assert bad["record"] == {"prompt": "3 + 1 ="}
    assert sorted(record["prompt"] for part in found for record in part) == [f"{n} + 1 " for n in (0, 1, 2, 4, 5, 6, 7)]
    assert all(in_shard(content_id(record), part, 2) for part in (0, 1) for record in found[part])
