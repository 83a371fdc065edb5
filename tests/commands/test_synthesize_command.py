"""`rlvr synthesize` as people type it: in a pipe from bucketize, over generations, with its gates and figures."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from chain_evaluator import answer_of

from rlvr_cli.tiny.problems import generate

RLVR = f"{sys.executable} -m rlvr_cli"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
TRAP = list(generate("trap"))


def rlvr(*arguments, given=b"", code=0):
    call = [*RLVR.split(), *map(str, arguments)]
    done = subprocess.run(call, input=given, capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done


def shell(command, cwd):
    """A line as typed, with `rlvr` standing for this checkout's."""
    typed = command.replace("rlvr ", f"{RLVR} ")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", typed], capture_output=True, env=ENVIRONMENT, cwd=cwd)
    assert done.returncode == 0, done.stderr.decode()
    return done


def records(content):
    return [orjson.loads(line) for line in content.splitlines()]


def statistics(path, n_correct=0, problems=TRAP[80:400:20], **columns):
    rows = [{**record, "n": 8, "n_correct": n_correct, "policy_step": 0, **columns} for record in problems]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return rows


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Two generations, really sampled: problems, scored, children; then the children scored, and grandchildren."""
    directory = tmp_path_factory.mktemp("synthesis")
    shell("rlvr select tiny:trap --batch 24 --method uniform > problems.jsonl", directory)
    for names in ("problems.jsonl scored-0.jsonl children-1.jsonl", "children-1.jsonl scored-1.jsonl children-2.jsonl"):
        problems, scored, children = names.split()
        shell(f"rlvr rollout {problems} --samples 8 --max-tokens 160 | rlvr verify > {scored}", directory)
        shell(
            "rlvr bucketize scored-*.jsonl | rlvr synthesize --known problems.jsonl --known 'scored-*.jsonl'"
            f" --avoid tiny:eval --metrics metrics.jsonl > {children} 2> told-{children}",
            directory,
        )
    return directory


def test_the_pipe_from_bucketize_gives_children_over_generations(work):
    given = records((work / "problems.jsonl").read_bytes())
    first, second = (records((work / f"children-{number}.jsonl").read_bytes()) for number in (1, 2))
    names = {record["problem_id"]: record for record in (*given, *first, *second)}
    prompts = [record["prompt"] for record in (*given, *first, *second)]
    assert len(first) == 48
    assert len(second) > 72
    assert len(names) == len(set(prompts)) == len(prompts)
    assert not set(prompts) & {record["prompt"] for record in generate("eval")}
    for child in (*first, *second):
        assert child["answer"] == answer_of(child["prompt"])
        parent = names[child["parent_id"]]
        assert child["generation"] == parent.get("generation", 0) + 1
        assert child["root_id"] == parent.get("root_id", parent["problem_id"])
        assert "kind" not in child
        assert "select_reason" not in child
    assert {child["generation"] for child in second} == {1, 2}


def test_the_account_tells_how_the_children_turned_out(work):
    first, second = records((work / "metrics.jsonl").read_bytes())
    assert (first["problems"], first["children"]) == (24, 48)
    assert first["too_hard"] + first["in_band"] + first["too_easy"] == 24
    assert sum(first["children_by_operator"].values()) == 48
    assert first["generations"]["1"]["measured"] == 0
    outcomes = second["generations"]["1"]
    assert outcomes["measured"] == 48
    assert outcomes["too_hard"] + outcomes["in_band"] + outcomes["too_easy"] == 48
    measured = records(shell("rlvr bucketize scored-1.jsonl", work).stdout)
    assert outcomes["in_band"] == sum(0 < row["n_correct"] < 8 for row in measured)
    assert sum(row["in_band"] for row in second["operators"].values()) == outcomes["in_band"]
    told = (work / "told-children-2.jsonl").read_text()
    assert "measured problems:" in told
    assert "generation 1" in told
    assert f"{second['children']} children: " in told


def test_problems_that_were_never_solved_have_children_in_the_band(work):
    measured = records(shell("rlvr bucketize scored-*.jsonl", work).stdout)
    unsolved = {row["problem_id"] for row in measured if row["n_correct"] == 0}
    reached = [row for row in measured if row.get("parent_id") in unsolved and 0 < row["n_correct"] < 8]
    assert {row["root_id"] for row in reached} <= unsolved
    assert reached


def test_the_same_call_writes_the_same_bytes_in_any_order_and_any_format(tmp_path):
    statistics(tmp_path / "stats.jsonl")
    lines = (tmp_path / "stats.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "backwards.jsonl").write_bytes(b"".join(lines[::-1]))
    done = rlvr("synthesize", tmp_path / "stats.jsonl")
    assert rlvr("synthesize", tmp_path / "backwards.jsonl").stdout == done.stdout
    assert rlvr("synthesize", "-", given=b"".join(lines)).stdout == done.stdout
    rlvr("synthesize", tmp_path / "stats.jsonl", "-o", tmp_path / "children.parquet")
    assert records(rlvr("convert", tmp_path / "children.parquet").stdout) == records(done.stdout)


def test_the_options_bound_what_is_made(tmp_path):
    rows = statistics(tmp_path / "stats.jsonl")

    def made(*options):
        return records(rlvr("synthesize", tmp_path / "stats.jsonl", *options).stdout)

    assert len(made()) == 2 * len(rows)
    assert len(made("--children", 3)) == 3 * len(rows)
    assert len(made("--count", 5)) == 5
    assert {child["operator"] for child in made("--operators", "cut, drop-step")} == {"cut", "drop-step"}
    assert {child["operator"] for child in made("--operators", "easier")} > {"cut", "drop-step"}
    assert made("--operators", "harder,sibling") == []
    assert made("--seed", 1) != made()
    assert all(len(child["prompt"].replace(".", "").split()) <= 14 for child in made("--max-words", 14))
    statistics(tmp_path / "stats.jsonl", generation=2)
    assert made("--max-generation", 2) == []
    assert {child["generation"] for child in made("--max-generation", 3)} == {3}


def test_the_gates_follow_their_options_and_are_counted(tmp_path):
    statistics(tmp_path / "stats.jsonl", problems=TRAP[80::4])
    first = rlvr("synthesize", tmp_path / "stats.jsonl").stdout
    strangers = [{name: child[name] for name in ("prompt", "answer", "verifier")} for child in records(first)]
    (tmp_path / "children.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in strangers))

    def refused(*options):
        rlvr("synthesize", tmp_path / "stats.jsonl", "--metrics", tmp_path / "metrics.jsonl", *options)
        return records((tmp_path / "metrics.jsonl").read_bytes())[-1]["refused"]

    plain = refused()
    assert refused("--known", tmp_path / "children.jsonl")["copy"] >= plain["copy"] + len(records(first))
    assert refused("--avoid", tmp_path / "children.jsonl")["evaluation"] > len(records(first))
    assert refused("--near", 0.5)["near_copy"] > plain["near_copy"] >= refused("--near", 1)["near_copy"]
    assert refused("--avoid", "tiny:eval", "--overlap", 0)["evaluation"] > 10
    assert refused("--avoid", "tiny:eval")["evaluation"] <= 1
    assert refused("--max-words", 14)["too_long"] > 0


def test_what_gets_no_child_is_told(tmp_path):
    prose = {"problem_id": "prose", "prompt": "2 + 2 = ?", "answer": "4", "verifier": "math", "n": 8, "n_correct": 0}
    once = {**TRAP[-1], "n": 1, "n_correct": 0}
    easy = {**TRAP[0], "n": 8, "n_correct": 8}
    given = b"".join(orjson.dumps(row) + b"\n" for row in (prose, once, easy))
    done = rlvr("synthesize", "-", "--operators", "easier", given=given)
    assert done.stdout == b""
    assert done.stderr.decode().splitlines() == [
        "rlvr synthesize: 2 measured problems: 1 too hard, 1 too easy, 0 in band",
        "rlvr synthesize: 1 problem with fewer than two judged samples: no child",
        "rlvr synthesize: 1 problem outside the domains that have operators: no child",
        "rlvr synthesize: 1 problem of a kind that --operators leaves out: no child",
        "rlvr synthesize: 0 children",
    ]


def test_the_help_names_the_command_of_the_last_gate():
    told = " ".join(rlvr("synthesize", "--help").stdout.decode().replace("│", " ").split())
    assert "rlvr select CHILDREN --stats STATS --mix frontier=1" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--operators", "easier,vibes"), "--operators: no 'vibes'; there are easier: drop-step, drop-half"),
        (("--operators", ""), "--operators: no ''"),
        (("--children", "0"), "--children is 0, expected at least 1"),
        (("--count", "-1"), "--count is -1, expected at least 0"),
        (("--max-generation", "0"), "--max-generation is 0, expected at least 1"),
        (("--max-words", "0"), "--max-words is 0, expected at least 1"),
        (("--near", "0"), "--near is 0.0"),
        (("--near", "nan"), "--near is nan"),
        (("--overlap", "1.5"), "--overlap is 1.5"),
    ],
)
def test_wrong_usage(options, told):
    assert told in rlvr("synthesize", "tiny:trap", *options, code=2).stderr.decode()


def test_problems_without_statistics_are_refused():
    done = rlvr("synthesize", "tiny:trap", code=1)
    assert done.stderr.decode() == ("rlvr synthesize: tiny:trap:1: n is missing; give the output of rlvr bucketize\n")


def test_a_bad_side_input_is_refused(tmp_path):
    statistics(tmp_path / "stats.jsonl")
    (tmp_path / "bad.jsonl").write_bytes(b'{"answer": "4"}\n')
    for option in ("--known", "--avoid"):
        done = rlvr("synthesize", tmp_path / "stats.jsonl", option, tmp_path / "bad.jsonl", code=1)
        assert b"bad.jsonl:1: prompt is missing" in done.stderr
