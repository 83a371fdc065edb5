"""What every command promises, seen from outside: streams, exit codes, interruption. `convert` stands for all."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from rlvr_cli.cli import COMMANDS

RLVR = [sys.executable, "-m", "rlvr_cli"]
REPOSITORY = Path(__file__).parents[1]
LINES = [b'{"problem_id":"%d","prompt":"%d + 1 ="}\n' % (number, number) for number in range(2000)]


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    Path("in.jsonl").write_bytes(b"".join(LINES))


def rlvr(*arguments: str, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RLVR, *arguments],
        input=given,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def loaded_after(*arguments: str) -> set[str]:
    """The modules that a call has imported when it ends."""
    code = "import sys, atexit\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    code += f"sys.argv[1:] = {list(arguments)}\nfrom rlvr_cli.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, stdin=subprocess.DEVNULL, check=True)
    return set(done.stderr.decode().split())


HEAVY = {"torch", "transformers", "numpy", "pyarrow", "sympy", "math_verify", "rich", "asyncio"}


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    text = rlvr("--help").stdout.decode()
    places = [text.index(f"  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert all(line in text for line in COMMANDS.values())
    assert not HEAVY & loaded_after("--help")


def test_help_comes_at_once() -> None:
    def seconds() -> float:  # of processor time: how long it is kept waiting by others is no matter of ours
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rlvr("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    # 0.15 s is promised on a quiet machine
    assert min(seconds() for _ in range(5)) < 0.3


def test_converting_jsonl_needs_nothing_heavy() -> None:
    assert not HEAVY & loaded_after("convert", "in.jsonl", "-o", "out.jsonl")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = rlvr(command, "--help")
    assert done.returncode == 0, done.stderr.decode()
    assert b"Usage: rlvr " + command.encode() in done.stdout
    for option in (b"--output", b"--shard", b"--on-error", b"--metrics", b"tiny:NAME"):
        assert option in done.stdout


def test_version() -> None:
    assert rlvr("--version").stdout.startswith(b"rlvr 0.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["convret"], "No such command 'convret'. Did you mean 'convert'?"),
        (["convert", "--shards", "0/2"], "No such option: --shards"),
        (["convert", "--on-error", "ignore"], "ignore"),
        (["convert", "--shard", "2/2"], "rlvr convert: --shard is 2/2, expected I/N"),
        (["convert", "in.jsonl", "-o", "out.csv"], "rlvr convert: out.csv: the ending names no format"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], said: str) -> None:
    done = rlvr(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.jsonl"], "rlvr convert: gone.jsonl: no such file or directory; check the name\n"),
        (["in.jsonl", "-o", "no/out.jsonl"], "rlvr convert: no/out.jsonl: there is no directory no; make it first\n"),
        (["in.jsonl", "--metrics", "no/m.jsonl"], "rlvr convert: --metrics no/m.jsonl: cannot be written"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_exit_code_1(arguments: list[str], said: str) -> None:
    done = rlvr("convert", *arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(said)
    assert done.stderr.count(b"\n") == 1


def test_an_unwritable_output_is_told_before_any_input_is_read() -> None:
    with subprocess.Popen([*RLVR, "convert", "-", "-o", "no/out.jsonl"], stdin=subprocess.PIPE) as process:
        assert process.wait(20) == 1  # though nobody has written to its input, nor closed it


def test_a_bad_record_names_file_line_and_field_and_leaves_no_output() -> None:
    Path("bad.jsonl").write_bytes(LINES[0] + b'{"reward": "yes"}\n')
    done = rlvr("convert", "bad.jsonl", "-o", "out.jsonl")
    assert (done.returncode, Path("out.jsonl").exists()) == (1, False)
    assert done.stderr == b'rlvr convert: bad.jsonl:2: reward is "yes", expected a number\n'
    assert b"Traceback" in rlvr("convert", "bad.jsonl", RLVR_TRACEBACK="1").stderr


def test_bad_records_can_be_set_aside_within_a_bound() -> None:
    Path("bad.jsonl").write_bytes(LINES[0] + b"{\n" + LINES[1] + b'{"reward": "yes"}\n')
    skip = ["convert", "bad.jsonl", "--on-error", "skip", "--rejects", "rejects.jsonl"]
    assert rlvr(*skip, "--max-rejects", "2").returncode == 0
    done = rlvr(*skip, "--max-rejects", "1", "-o", "out.jsonl")
    assert done.returncode == 3
    assert b"2 bad records set aside, --max-rejects allows 1; see rejects.jsonl" in done.stderr
    assert Path("out.jsonl").read_bytes() == LINES[0] + LINES[1]  # finished all the same
    assert [orjson.loads(line)["where"] for line in Path("rejects.jsonl").read_bytes().splitlines()] == [
        "bad.jsonl:2",
        "bad.jsonl:4",
    ]


def test_without_input_the_embedded_problems_are_read_and_that_is_said() -> None:
    done = subprocess.run([*RLVR, "convert"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert b"reading the embedded problems, tiny:learnable" in done.stderr
    assert orjson.loads(done.stdout.splitlines()[0])["source"] == "tiny:learnable"


def test_an_empty_pipe_only_warns() -> None:
    done = rlvr("convert", given=b"")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"warning: no records in standard input" in done.stderr


def test_a_pipe_carries_any_format_and_records_alone() -> None:
    for form in ("jsonl", "jsonl.gz", "jsonl.zst", "parquet"):
        packed = rlvr("convert", "in.jsonl", "--format", form).stdout
        assert rlvr("convert", given=packed).stdout == b"".join(LINES), form


def test_files_and_shards_become_one_file_and_come_back() -> None:
    assert rlvr("convert", "in.jsonl", "-o", "all.parquet").returncode == 0
    for index in range(3):
        assert rlvr("convert", "all.parquet", "--shard", f"{index}/3", "-o", f"part-{index}.jsonl.gz").returncode == 0
    merged = rlvr("convert", "part-*.jsonl.gz").stdout.splitlines(keepends=True)
    assert sorted(merged) == sorted(LINES)
    assert merged != LINES  # a shard is by hash, not by place


def test_duplicates_are_counted_and_dropped_on_request() -> None:
    done = rlvr("convert", "in.jsonl", "in.jsonl", "-o", "out.jsonl")
    assert done.stderr == b"rlvr convert: 4000 records; 2000 duplicates kept\n"
    done = rlvr("convert", "in.jsonl", "in.jsonl", "-o", "out.jsonl", "--drop-duplicates")
    assert done.stderr == b"rlvr convert: 4000 records; 2000 duplicates dropped\n"
    assert Path("out.jsonl").read_bytes() == b"".join(LINES)


def test_each_run_appends_a_line_of_metrics() -> None:
    for _ in range(2):
        rlvr("convert", "in.jsonl", "-o", "out.jsonl", "--metrics", "metrics.jsonl")
    lines = [orjson.loads(line) for line in Path("metrics.jsonl").read_bytes().splitlines()]
    assert [(line["command"], line["read"], line["written"], line["ended"]) for line in lines] == [
        ("convert", 2000, 2000, "ok")
    ] * 2


def test_a_closed_pipe_ends_quietly() -> None:
    with subprocess.Popen(
        [*RLVR, "convert", *["in.jsonl"] * 50, "--metrics", "metrics.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == LINES[0]
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0
    assert orjson.loads(Path("metrics.jsonl").read_bytes())["ended"] == "closed pipe"


@contextmanager
def half_done(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run that has written its first 1000 records and waits for the rest of its input."""
    command = [*RLVR, "convert", "-", "-o", "out.jsonl", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(LINES[:1000]))
        process.stdin.flush()
        partial = Path(".out.jsonl.partial")
        until(lambda: partial.exists() and partial.read_bytes().endswith(LINES[999]))
        try:
            yield process
        finally:
            process.kill()
            process.stdin.close()


def until(true: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_run_goes_on_where_it_was() -> None:
    with half_done() as process:
        process.kill()
        process.wait()
    assert not Path("out.jsonl").exists()
    with Path(".out.jsonl.partial").open("ab") as partial:
        partial.write(LINES[1000][:10])  # a torn line, as a kill in the middle of a write leaves it
    refused = rlvr("convert", "-", "-o", "out.jsonl", given=b"".join(LINES))
    assert refused.returncode == 1
    assert b"--resume goes on from it, --force starts over" in refused.stderr
    assert b"other input" in rlvr("convert", "-", "-o", "out.jsonl", "--resume", given=b"".join(LINES[1:])).stderr
    arguments = ["convert", "-", "-o", "out.jsonl", "--resume", "--metrics", "metrics.jsonl"]
    assert rlvr(*arguments, given=b"".join(LINES)).returncode == 0
    assert Path("out.jsonl").read_bytes() == b"".join(LINES)
    assert not Path(".out.jsonl.partial").exists()
    figures = orjson.loads(Path("metrics.jsonl").read_bytes())
    assert (figures["already"], figures["written"]) == (1000, 1000)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_what_is_kept(number: signal.Signals) -> None:
    with half_done("--metrics", "metrics.jsonl") as process:
        process.send_signal(number)
        assert process.wait(20) == 130
        assert process.stderr is not None
        assert process.stderr.read() == (b"rlvr convert: interrupted; what is done is kept, --resume goes on from it\n")
    assert orjson.loads(Path("metrics.jsonl").read_bytes())["ended"] == "interrupted"
    assert rlvr("convert", "-", "-o", "out.jsonl", "--resume", given=b"".join(LINES)).returncode == 0
    assert Path("out.jsonl").read_bytes() == b"".join(LINES)


def test_two_runs_never_write_one_output() -> None:
    with half_done():
        second = rlvr("convert", "in.jsonl", "-o", "out.jsonl", "--force")
        assert second.returncode == 1
        assert b"out.jsonl: another run is writing it" in second.stderr


def test_records_flow_through_a_pipe_one_by_one() -> None:
    with subprocess.Popen([*RLVR, "convert"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in LINES[:3]:
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
        assert process.wait(20) == 0


def test_memory_does_not_grow_with_the_file() -> None:
    line = b'{"prompt":"' + b"x" * 100_000 + b'","n":%d}\n'
    for count in (10, 600):
        Path("big.jsonl").write_bytes(b"".join(line % number for number in range(count)))
        rlvr("convert", "big.jsonl", "-o", "out.jsonl", "--metrics", "metrics.jsonl")
    small, big = (orjson.loads(text)["peak_mib"] for text in Path("metrics.jsonl").read_bytes().splitlines())
    assert big - small < 10  # the file is 60 MB


@pytest.mark.parametrize("option", ["--rejects", "--metrics"])
def test_no_written_file_is_an_input_or_the_output(option: str) -> None:
    skip = ("--on-error", "skip")
    over = rlvr("convert", "in.jsonl", *skip, option, "./in.jsonl", "-o", "out.jsonl")
    assert over.returncode == 2
    assert f"{option} ./in.jsonl is an input".encode() in over.stderr
    same = rlvr("convert", "in.jsonl", *skip, option, "./out.jsonl", "-o", "out.jsonl")
    assert same.returncode == 2
    assert Path("in.jsonl").read_bytes() == b"".join(LINES)


def test_an_output_among_its_own_shards_is_left_out() -> None:
    Path("shards").mkdir()
    Path("shards/0.jsonl").write_bytes(b"".join(LINES[:3]))
    for _ in range(2):
        done = rlvr("convert", "shards", "-o", "shards/all.jsonl")
        assert done.returncode == 0
    assert b"shards/all.jsonl is the output: left out of the inputs" in done.stderr
    assert Path("shards/all.jsonl").read_bytes() == b"".join(LINES[:3])


def test_a_closed_standard_output_is_one_line() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(RLVR)} convert in.jsonl >&-"], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert b"standard output is closed" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_the_command_line_says_the_format() -> None:
    rlvr("convert", "in.jsonl", "-o", "out.jsonl", RLVR_FORMAT="parquet")
    assert Path("out.jsonl").read_bytes() == b"".join(LINES)


@pytest.mark.parametrize("value", [b"123456789012345678901234567890", b"[" * 200 + b"]" * 200])
def test_a_value_that_is_hard_to_show_is_named_all_the_same(value: bytes) -> None:
    Path("odd.jsonl").write_bytes(b'{"prompt":' + value + b"}\n")
    done = rlvr("convert", "odd.jsonl")
    assert done.returncode == 1
    assert b"odd.jsonl:1: prompt is " in done.stderr
    assert b"expected a string" in done.stderr
