import pytest

from rlvr_cli.streams.jsonl import BadLine, dumps, loads, read, read_json


def test_a_record_knows_its_file_and_line() -> None:
    first, second = read([b'{"prompt": "2 + 2"}\n', b"\n", b'{"n": 3}'], "p.jsonl")
    assert (first, first.where) == ({"prompt": "2 + 2"}, "p.jsonl:1")
    assert (second, second.where) == ({"n": 3}, "p.jsonl:3")  # the blank line counts, and is no record


def test_null_and_absent_are_one() -> None:
    assert list(read([b'{"reward": null, "detail": {"box": null}}'], "s")) == [{"detail": {"box": None}}]


def test_a_byte_order_mark_and_windows_line_ends_are_taken_as_they_come() -> None:
    assert list(read([b'\xef\xbb\xbf{"a": 1}\r\n', b'{"a": 2}\r\n'], "s")) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": 1', "is not valid JSON"),
        (b'{"a": NaN}', "is not valid JSON"),
        (b'{"a": 1e999}', "is not valid JSON"),
        (b'{"a": "\xff"}', "is not valid UTF-8 at byte 8"),
        (b"[1, 2]", "is JSON but no object"),
        (b"null", "is JSON but no object"),
        (b'{"a": "\\ud800"}', "is not valid JSON"),
    ],
)
def test_what_is_no_record_is_reported_with_its_line(line: bytes, reason: str) -> None:
    good, bad = read([b'{"a": 1}\n', line + b"\n"], "in.jsonl")
    assert good == {"a": 1}
    assert isinstance(bad, BadLine)
    assert bad.where == "in.jsonl:2"
    assert bad.reason.startswith(reason)
    assert bad.text == line.decode(errors="replace")


def test_the_column_of_a_syntax_error_is_told() -> None:
    [bad] = read([b'{"a": 1, b: 2}\n'], "s")
    assert isinstance(bad, BadLine)
    assert "column 10" in bad.reason
    assert "line 1" not in bad.reason  # the file's line is in `where`


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**40, -(10**40)])
def test_integers_of_any_size_are_kept(number: int) -> None:
    text = dumps({"n": number, "list": [number]})
    assert loads(text) == {"n": number, "list": [number]}


def test_a_long_fraction_is_still_a_float() -> None:
    assert loads(b"[0.00012345678901234567890]") == [0.00012345678901234567890]


def test_deep_nesting_survives() -> None:
    value: object = 1
    for _ in range(400):  # beyond what orjson writes
        value = [value]
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{\n  "a": 1,\n  "b": null\n}\n', [({"a": 1}, "f.json:1")]),
        (b'\xef\xbb\xbf{\r\n"a": 1\r\n}', [({"a": 1}, "f.json:1")]),
        (b'[\n{"a": 1},\n\n{"a": 2}]', [({"a": 1}, "f.json:1"), ({"a": 2}, "f.json:2")]),
        (b'[{"a": 1}, {"a": 2}]', [({"a": 1}, "f.json:1"), ({"a": 2}, "f.json:2")]),
        (b'{"a": 1}\n\n{"a": 2}\n', [({"a": 1}, "f.json:1"), ({"a": 2}, "f.json:3")]),
        (b'{"a": 1}', [({"a": 1}, "f.json:1")]),
        (b"", []),
        (b"\n", []),
        (b"[]", []),
    ],
)
def test_a_json_file_is_an_object_a_list_or_lines(text: bytes, expected: list) -> None:
    assert [(dict(record), record.where) for record in read_json(text.splitlines(keepends=True), "f.json")] == expected


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (b'{\n  "a": 1,\n  "b" 2\n}\n', [("f.json:3", "is not valid JSON")]),
        (b'[\n{"a": 1},\n{"a": \n', [("f.json:4", "is not valid JSON")]),
        (b'[{"a": 1}, 5]', [("f.json:2", "is JSON but no object")]),
        (b'{"a": 1\n{"a": 2}\n{\n', [("f.json:1", "is not valid JSON"), ("f.json:3", "is not valid JSON")]),
    ],
)
def test_what_is_no_record_of_a_json_file_is_reported_where_it_stands(text: bytes, places: list) -> None:
    found = [bad for bad in read_json(text.splitlines(keepends=True), "f.json") if isinstance(bad, BadLine)]
    assert [bad.where for bad in found] == [place for place, _ in places]
    assert all(bad.reason.startswith(reason) for bad, (_, reason) in zip(found, places, strict=True))


def test_a_bad_item_of_a_list_is_shown_alone() -> None:
    text = b'[{"a": 1}, 5,\n ["x", 2]]'
    found = [bad.text for bad in read_json(text.splitlines(keepends=True), "f.json") if isinstance(bad, BadLine)]
    assert found == ["5", '["x",2]']


def test_json_lines_of_a_json_file_are_streamed() -> None:
    def endless():
        while True:
            yield b'{"a": 1}\n'

    assert next(read_json(endless(), "f.json")) == {"a": 1}
