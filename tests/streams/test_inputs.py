import gzip
import io
import os
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.records import check_columns
from rlvr_cli.streams.inputs import Source, digest, expand, read, read_all, spooled

LINES = b"".join(b'{"n": %d}\n' % number for number in range(1000))


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def names(arguments: list[str]) -> list[str]:
    return [source.name for source in expand(arguments)]


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for name in ("b.jsonl", "a.jsonl.gz", "c.parquet", "d.jsonl.zst", ".e.jsonl.partial", ".f.jsonl", "notes.txt"):
        (tmp_path / "run" / name).write_bytes(LINES)
    return tmp_path


def test_a_directory_is_its_shards_in_order_and_nothing_hidden(shards: Path) -> None:
    assert names(["run"]) == ["run/a.jsonl.gz", "run/b.jsonl", "run/c.parquet", "run/d.jsonl.zst"]


def test_a_glob_that_the_shell_left_alone_is_expanded_and_sorted(shards: Path) -> None:
    assert names(["run/[ab].jsonl*"]) == ["run/a.jsonl.gz", "run/b.jsonl"]


def test_arguments_keep_their_order(shards: Path) -> None:
    assert names(["run/c.parquet", "-", "run/b.jsonl", "tiny:trap"]) == [
        "run/c.parquet",
        "<stdin>",
        "run/b.jsonl",
        "tiny:trap",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: no such file or directory"),
        (["run/*.csv"], r"run/\*.csv: no file matches"),
        (["empty"], "empty: no records in this directory; expected files ending in .jsonl"),
        (["tiny:huge"], "tiny:huge: no such embedded problems; there are .*tiny:learnable.*tiny:trap"),
        (["-", "-"], "standard input can be read only once"),
    ],
)
def test_a_name_with_nothing_behind_it_is_an_error(shards: Path, arguments: list[str], message: str) -> None:
    (shards / "empty").mkdir()
    with pytest.raises(UserError, match=message):
        expand(arguments)


def test_a_tree_of_json_files_is_read_by_a_pattern_that_its_directory_names(shards: Path) -> None:
    (shards / "train" / "algebra").mkdir(parents=True)
    for name in ("2", "10"):
        (shards / "train" / "algebra" / f"{name}.json").write_text(f'{{\n "n": {name}\n}}\n')
    with pytest.raises(UserError, match=r"train: no records .* by a pattern, 'train/\*\*/\*.json'"):
        expand(["train"])
    records = [record for source in expand(["train/**/*.json"]) for record in read(source)]
    assert records == [{"n": 10}, {"n": 2}]
    assert [record.where for record in records] == ["train/algebra/10.json:1", "train/algebra/2.json:1"]


@pytest.mark.parametrize("packed", [LINES, gzip.compress(LINES), zstd(LINES)], ids=["plain", "gzip", "zstd"])
def test_content_tells_the_format_whatever_the_name(tmp_path: Path, packed: bytes) -> None:
    path = tmp_path / "records"
    path.write_bytes(packed)
    records = list(read(Source("records", path)))
    assert [record["n"] for record in records] == list(range(1000))  # type: ignore[call-overload]
    assert records[-1].where == "records:1000"


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_concatenated_members_are_all_read(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "two"
    path.write_bytes(pack(LINES) + pack(LINES))  # type: ignore[operator]
    assert sum(1 for _ in read(Source("two", path))) == 2000


@pytest.mark.parametrize("packed", [gzip.compress(LINES), zstd(LINES)], ids=["gzip", "zstd"])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_truncated_or_corrupt_file_is_one_clear_error(tmp_path: Path, packed: bytes, damage: str) -> None:
    path = tmp_path / "f.jsonl.z"
    spoilt = packed[:10] + bytes(byte ^ 255 for byte in packed[10:40]) + packed[40:]
    path.write_bytes(packed[:-3] if damage == "cut" else spoilt)
    with pytest.raises(UserError, match=r"f\.jsonl\.z: truncated or corrupt (gzip|zstd) data after line \d+"):
        list(read(Source("f.jsonl.z", path)))


@pytest.mark.parametrize("content", [b"", b"\n", b'{"n": 1}', b"{"])
def test_short_files_are_read_as_they_are(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    assert len(list(read(Source("s", path)))) == (1 if content.strip() else 0)


def test_a_pipe_is_read_as_it_comes_and_can_be_spooled(tmp_path: Path) -> None:
    receiver, sender = os.pipe()
    os.write(sender, b'{"n": 1}\n{"n": 2}\n')
    os.close(sender)
    with ExitStack() as stack:
        pipe = Source("<pipe>", Path(f"/dev/fd/{receiver}"))
        assert digest(pipe) == "stream"
        copy = spooled(pipe, stack)
        assert [list(read(copy)), list(read(copy))] == [[{"n": 1}, {"n": 2}]] * 2
        assert list(read(copy))[1].where == "<pipe>:2"
    os.close(receiver)


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    one, two, other = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    one.write_bytes(LINES)
    two.write_bytes(LINES)
    other.write_bytes(LINES + b" ")
    assert digest(Source("1", one)) == digest(Source("2", two)) != digest(Source("3", other))


def test_side_inputs_stop_at_any_error(tmp_path: Path) -> None:
    path = tmp_path / "stats.jsonl"
    path.write_text('{"n": 1}\n{"n": "many"}\n')
    rows = read_all([str(path)], check_columns)
    assert next(rows) == {"n": 1}
    with pytest.raises(RecordError, match=r'stats\.jsonl:2: n is "many", expected an integer'):
        next(rows)
    path.write_text("{")
    with pytest.raises(RecordError, match=r"stats\.jsonl:1: is not valid JSON"):
        list(read_all([str(path)], check_columns))


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl: cannot be read \(No such file"):
        list(read(Source("gone.jsonl", tmp_path / "gone.jsonl")))


def test_parquet_from_a_pipe_is_read(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"n": [1, 2]}), buffer)
    receiver, sender = os.pipe()
    os.write(sender, buffer.getvalue())
    os.close(sender)
    records = list(read(Source("<pipe>", Path(f"/dev/fd/{receiver}"))))
    os.close(receiver)
    assert records == [{"n": 1}, {"n": 2}]
