"""`rlvr convert --from` as people type it."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlvr_cli.records import problem_id

GSM8K = [
    {"question": f"Tom buys {n} boxes of 6 pens. How many pens?", "answer": f"{n} * 6 = {6 * n}\n#### {6 * n}"}
    for n in range(1, 5)
]
TURN = pa.struct([("content", pa.string()), ("role", pa.string())])
VERL = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(TURN)),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("ground_truth", pa.string()), ("style", pa.string())])),
        ("extra_info", pa.struct([("answer", pa.string()), ("index", pa.int64()), ("split", pa.string())])),
    ]
)


def verl_row(index, source="openai/gsm8k", truth="12"):
    return {
        "data_source": source,
        "prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{index}: 2 * 6?"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": "train", "index": index, "answer": None},
    }


@pytest.fixture(autouse=True)
def _directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    write("gsm8k.jsonl", GSM8K)


def write(name, rows):
    Path(name).write_bytes(lines(rows))


def lines(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def convert(*arguments, given=None):
    call = [sys.executable, "-m", "rlvr_cli", "convert", *map(str, arguments)]
    stdin = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(call, capture_output=True, check=False, **stdin)


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def test_gsm8k_becomes_problems_that_are_asked_and_judged():
    done = convert("--from", "gsm8k", "gsm8k.jsonl", "--metrics", "m.jsonl")
    assert done.stderr == b"rlvr convert: 4 problems from gsm8k: 4 for gsm8k\n"
    made = records(done.stdout)
    assert [record["answer"] for record in made] == ["6", "12", "18", "24"]
    assert all(record["problem_id"] == problem_id({**record, "problem_id": None}) for record in made)
    [figures] = records(Path("m.jsonl").read_bytes())
    assert (figures["written"], figures["verifiers"], figures["duplicates"]) == (4, {"gsm8k": 4}, 0)
    write("answers.jsonl", [{**record, "completion": f"#### {record['answer']}"} for record in made])
    call = [sys.executable, "-m", "rlvr_cli", "verify", "answers.jsonl"]
    assert b"4 correct; accuracy 1.000" in subprocess.run(call, capture_output=True, check=True).stderr


def test_options_set_the_instruction_the_verifier_and_the_source():
    ask = "Put the number after ####."
    options = ("--instruction", ask, "--verifier", "math", "--source", "pens")
    first, *_ = records(convert("--from", "gsm8k", "gsm8k.jsonl", *options).stdout)
    assert first["messages"] == [{"role": "user", "content": f"{GSM8K[0]['question']} {ask}"}]
    assert (first["verifier"], first["source"]) == ("math", "pens")
    bare, *_ = records(convert("--from", "gsm8k", "gsm8k.jsonl", "--verifier", "math").stdout)
    assert first["problem_id"] != bare["problem_id"]


def test_the_tree_of_math_is_read_as_it_is_published():
    for number, answer in ((1, r"\frac{1}{2}"), (2, "(3,4]")):
        path = Path("MATH/train/algebra") / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        row = {"problem": f"No. {number}?", "level": "Level 1", "type": "Algebra", "solution": rf"$\boxed{{{answer}}}$"}
        path.write_text(json.dumps(row, indent=4))
    made = records(convert("--from", "math", "MATH/train/**/*.json").stdout)
    assert [(record["answer"], record["level"]) for record in made] == [
        (r"\frac{1}{2}", "Level 1"),
        ("(3,4]", "Level 1"),
    ]
    Path("MATH/train/algebra/2.json").write_text('{\n    "problem": "No. 2?",\n    "level": "Level 1"\n}')
    done = convert("--from", "math", "MATH/train/**/*.json")
    assert done.stderr.startswith(b"rlvr convert: MATH/train/algebra/2.json:1: solution is missing")


def test_verls_parquet_with_its_nested_columns():
    rows = [verl_row(0), verl_row(1, "lighteval/MATH", r"\frac{1}{2}")]
    pq.write_table(pa.Table.from_pylist(rows, schema=VERL), "train.parquet")
    done = convert("--from", "verl", "train.parquet")
    assert done.stderr == b"rlvr convert: 2 problems from verl: 1 for gsm8k, 1 for math\n"
    first, second = records(done.stdout)
    del first["problem_id"]
    assert first == {
        "messages": rows[0]["prompt"],
        "answer": "12",
        "verifier": "gsm8k",
        "source": "openai/gsm8k",
        "reward_model": {"style": "rule"},
        "ability": "math",
        "extra_info": {"split": "train", "index": 0, "answer": None},
    }
    assert (second["answer"], second["verifier"]) == (r"\frac{1}{2}", "math")
    write("train.jsonl", rows)
    assert records(convert("--from", "verl", "train.jsonl").stdout) == records(done.stdout)


def test_what_was_converted_comes_back_from_parquet_as_it_was():
    write("verl.jsonl", [verl_row(0), verl_row(1)])
    made = convert("--from", "verl", "verl.jsonl").stdout
    assert convert("--from", "verl", "verl.jsonl", "-o", "problems.parquet").returncode == 0
    assert records(convert("problems.parquet").stdout) == records(made)


def test_a_bad_row_names_its_file_row_and_field_and_can_be_set_aside():
    rows = [verl_row(0), verl_row(1, "my_set"), verl_row(2, truth="many"), verl_row(3)]
    pq.write_table(pa.Table.from_pylist(rows, schema=VERL), "train.parquet")
    done = convert("--from", "verl", "train.parquet", "-o", "out.jsonl")
    assert (done.returncode, Path("out.jsonl").exists()) == (1, False)
    assert done.stderr == (
        b"rlvr convert: train.parquet:2: data_source is 'my_set', for which no verifier is known; "
        b"name one with --verifier\n"
    )
    skip = ("--on-error", "skip", "--rejects", "bad.jsonl", "--force")
    done = convert("--from", "verl", "train.parquet", "-o", "out.jsonl", *skip)
    assert b"2 problems from verl: 2 for gsm8k" in done.stderr
    assert b"2 bad records set aside; see bad.jsonl" in done.stderr
    assert [record["extra_info"]["index"] for record in records(Path("out.jsonl").read_bytes())] == [0, 3]
    bad = records(Path("bad.jsonl").read_bytes())
    assert [entry["where"] for entry in bad] == ["train.parquet:2", "train.parquet:3"]
    assert bad[0]["record"] == rows[1]  # as it was read: mended, it can be given again
    assert convert("--from", "verl", "train.parquet", "--verifier", "exact").returncode == 0


def test_rows_of_another_layout_are_refused():
    done = convert("--from", "trl", given=lines([{"prompt": "?", "chosen": "a", "rejected": "b"}]))
    assert done.stderr.startswith(b"rlvr convert: <stdin>:1: chosen is there: the row holds a preference")


def test_duplicates_are_counted_and_dropped():
    write("trl.jsonl", [{"prompt": "1 + 1 =", "answer": "2"}] * 100 + [{"prompt": "1 + 2 =", "answer": 3}])
    done = convert("--from", "trl", "trl.jsonl", "--drop-duplicates")
    assert done.stderr == b"rlvr convert: 101 problems from trl: 101 for math; 99 duplicates dropped\n"
    assert [record["answer"] for record in records(done.stdout)] == ["2", "3"]


def test_shards_are_by_problem_not_by_row():
    parts = [records(convert("--from", "gsm8k", "gsm8k.jsonl", "--shard", f"{part}/2").stdout) for part in (0, 1)]
    converted = convert("--from", "gsm8k", "gsm8k.jsonl").stdout
    assert parts == [records(convert("--shard", f"{part}/2", given=converted).stdout) for part in (0, 1)]
    both = [*parts[0], *parts[1]]
    assert all(parts) and sorted(map(str, both)) == sorted(map(str, records(converted)))


def test_a_broken_off_run_is_gone_on_with_only_as_it_was_called():
    torn = lines(GSM8K[:2]) + b"{\n"
    assert convert("--from", "gsm8k", "-", "-o", "out.jsonl", given=torn).returncode == 1
    other = convert("--from", "gsm8k", "-", "-o", "out.jsonl", "--resume", "--verifier", "math", given=lines(GSM8K))
    assert b"was made with other options" in other.stderr
    done = convert("--from", "gsm8k", "-", "-o", "out.jsonl", "--resume", "--metrics", "m.jsonl", given=lines(GSM8K))
    assert done.returncode == 0, done.stderr
    assert Path("out.jsonl").read_bytes() == convert("--from", "gsm8k", "gsm8k.jsonl").stdout
    assert [(line["already"], line["written"]) for line in records(Path("m.jsonl").read_bytes())] == [(2, 2)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--verifier", "math"], "--verifier needs --from"),
        (["--source", "x"], "--source needs --from"),
        (["--instruction", "x"], "--instruction needs --from"),
        (
            ["--from", "trl", "--instruction", "x"],
            "--instruction needs --from gsm8k or math; trl's prompts have theirs",
        ),
        (["--from", "gsm8k", "--verifier", "judge"], "no verifier 'judge'; there are boxed, "),
        (["--from", "gsm8k", "--verifier", "os:system"], "--verifier os:system: records cannot name your own code"),
        (["--from", "squad"], "squad"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, said):
    done = convert("gsm8k.jsonl", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()


def test_nothing_heavy_is_loaded_for_json_lines():
    code = "import sys, atexit\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    code += (
        "sys.argv[1:] = 'convert --from math -o out.jsonl math.jsonl'.split()\nfrom rlvr_cli.cli import main\nmain()"
    )
    write("math.jsonl", [{"problem": "?", "answer": "1"}])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, stdin=subprocess.DEVNULL, check=True)
    assert not {"torch", "transformers", "pyarrow", "sympy", "math_verify"} & set(done.stderr.decode().split())
