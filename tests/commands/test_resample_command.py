"""`rlvr resample` as people type it; in the process of the tests where no real one is needed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlvr_cli.cli import app
from rlvr_cli.engines.engine import Sampling
from rlvr_cli.errors import UserError
from rlvr_cli.records import Record, stable_hash
from rlvr_cli.stages.rollout import Plan, rollout
from rlvr_cli.tiny.problems import generate

RLVR = [sys.executable, "-m", "rlvr_cli"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}


def rlvr(*arguments, code=0):
    """Run a command in this process; what it told people."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.stderr
    return done.stderr


def read(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def parents(make_engine, tokens, tiny):
    """A failed rollout of each of sixteen deep problems."""
    problems = [Record(record) for record in list(generate("deep"))[50:66]]
    plan = Plan(tiny, 1, 200, 0, Sampling())
    found = rollout(problems, make_engine(64, "float64"), plan, tokens.prompt_ids, tokens.text)
    return [{**record, "verdict": "wrong", "reward": 0.0} for record in found]


def pivot(parent, prefix_len, **columns):
    """As find-pivots writes it."""
    own = stable_hash(parent["rollout_id"], prefix_len, parent["policy_id"], parent["policy_step"])
    found = {"pivot_id": own, "prefix_len": prefix_len, "depth": 0.5, "recoverability": 1.0, "utility": 0.25}
    return {**parent, **found, **columns}


@pytest.fixture(scope="module")
def pivots(parents):
    return [pivot(parent, 40 + 5 * number) for number, parent in enumerate(parents)]


@pytest.fixture(scope="module")
def work(tmp_path_factory, pivots):
    """A directory with pivots and their branches."""
    directory = tmp_path_factory.mktemp("resample")
    source = write(directory / "pivots.jsonl", pivots)
    told = rlvr("resample", source, "--metrics", directory / "metrics.jsonl", "-o", directory / "branches.jsonl")
    (directory / "told").write_text(told)
    return directory


def test_branches_begin_with_the_exact_ids_of_their_parents(work, pivots):
    branches = read(work / "branches.jsonl")
    assert len(branches) == 16 * 8
    assert len({branch["rollout_id"] for branch in branches}) == len(branches)
    for parent, group in zip(pivots, zip(*[iter(branches)] * 8, strict=True), strict=True):
        length = parent["prefix_len"]
        for branch in group:
            assert branch["parent_rollout_id"] == parent["rollout_id"]
            assert branch["pivot_id"] == branch["group_id"] == parent["pivot_id"]
            assert branch["completion_token_ids"][:length] == parent["completion_token_ids"][:length]
            assert branch["logprobs"][:length] == parent["logprobs"][:length]
            assert (branch["stream"], branch["depth"], branch["max_tokens"]) == ("branch", 0.5, 200)
            assert "reward" not in branch


def test_the_figures_tell_new_tokens_from_inherited_ones(work):
    branches = read(work / "branches.jsonl")
    inherited = sum(branch["prefix_len"] for branch in branches)
    new = sum(len(branch["completion_token_ids"]) for branch in branches) - inherited
    (line,) = read(work / "metrics.jsonl")
    assert (line["pivots"], line["branches"]) == (16, 128)
    assert (line["tokens_generated"], line["tokens_inherited"]) == (new, inherited)
    assert line["finish_stop"] + line["finish_length"] + line["finish_error"] == 128
    assert line["tokens_per_second"] > 0
    told = (work / "told").read_text()
    assert f"128 branches of 16 pivots, {new} new tokens in " in told
    assert f" after {inherited} inherited" in told
    assert "warning" not in told


def test_shards_and_any_batch_size_make_the_same_branches_in_float64(work, tmp_path):
    common = ["resample", work / "pivots.jsonl", "--samples", 3, "--dtype", "float64"]
    rlvr(*common, "-o", tmp_path / "whole.jsonl")
    told = [
        rlvr(*common, "--shard", f"{part}/2", "--batch-size", size, "-o", tmp_path / f"{part}.parquet")
        for part, size in enumerate((2, 7))
    ]
    assert (
        "warning: --batch-size 2 is less than --samples 3: the prefix of a pivot is computed more than once" in told[0]
    )
    assert "warning" not in told[1]
    rlvr("convert", tmp_path / "0.parquet", tmp_path / "1.parquet", "-o", tmp_path / "parts.jsonl")
    ids, parts = (
        {branch["rollout_id"]: branch["completion_token_ids"] for branch in read(tmp_path / f"{name}.jsonl")}
        for name in ("whole", "parts")
    )
    assert len(ids) == 48
    assert parts == ids


def test_sampling_is_as_the_parents_was_unless_options_say_otherwise(pivots, tmp_path):
    source = write(tmp_path / "p.jsonl", [{**it, "temperature": 0.5} for it in pivots[:2]])
    call = ["resample", source, "--samples", 1, "-o", tmp_path / "b.jsonl"]
    rlvr(*call)
    columns = ("temperature", "top_p", "top_k", "min_p")
    assert [[branch[name] for name in columns] for branch in read(tmp_path / "b.jsonl")] == [[0.5, 1.0, 0, 0.0]] * 2
    told = rlvr(*call, "--temperature", 1.5, "--top-p", 0.9, "--top-k", 5, "--min-p", 0.01)
    assert [[branch[name] for name in columns] for branch in read(tmp_path / "b.jsonl")] == [[1.5, 0.9, 5, 0.01]] * 2
    assert "warning: with temperature 0, top-p, top-k or min-p rlvr train-step refuses these records" in told


def test_pivots_of_several_temperatures_need_the_option(pivots, tmp_path):
    source = write(tmp_path / "p.jsonl", [pivots[0], {**pivots[1], "temperature": 0.5}])
    call = ["resample", source, "--samples", 1, "-o", tmp_path / "b.jsonl"]
    told = rlvr(*call, code=1)
    assert f"{source}:2: temperature is 0.5, but 1.0 at {source}:1; give --temperature for all branches" in told
    rlvr(*call, "--temperature", 0.5)
    assert [branch["temperature"] for branch in read(tmp_path / "b.jsonl")] == [0.5, 0.5]


def test_branches_stop_where_the_parents_did_unless_told_otherwise(pivots, tmp_path):
    source = write(tmp_path / "p.jsonl", [{**it, "stop": [". ", "=>"]} for it in pivots[:2]])
    call = ["resample", source, "--samples", 2, "-o", tmp_path / "b.jsonl"]
    rlvr(*call)
    for branch in read(tmp_path / "b.jsonl"):
        assert branch["stop"] == [". ", "=>"]
        assert 0 < len(branch["completion_token_ids"]) - branch["prefix_len"] < 20  # a step of a chain, at most
        assert branch["finish_reason"] == "stop"
    rlvr(*call, "--stop", "zz 9")
    for branch in read(tmp_path / "b.jsonl"):
        assert branch["stop"] == ["zz 9"]
        assert branch["completion"].count(". ") > 2
    source = write(tmp_path / "p.jsonl", [{**pivots[0], "stop": [". "]}, pivots[1]])
    told = rlvr(*call, code=1)
    assert f"{source}:2: stop is [], but ['. '] at {source}:1; give --stop for all branches" in told
    source = write(tmp_path / "p.jsonl", [{**pivots[0], "stop": ". "}])
    assert f'{source}:1: stop is ". ", expected a list of strings' in rlvr(*call, code=1)


def test_a_policy_that_nobody_can_name_is_no_other_one(pivots, tmp_path):
    source = write(tmp_path / "p.jsonl", [{**it, "policy_id": None} for it in pivots[:2]])
    assert "warning" not in rlvr("resample", source, "--samples", 1, "-o", tmp_path / "b.jsonl")


def _other_weights(policy):
    with (policy / "model.safetensors").open("ab") as file:
        file.write(b" ")


def _later_step(policy):
    (policy / "rlvr.json").write_text('{"policy_step": 7}')


def _other_place(policy):
    policy.rename(policy.with_name("moved"))


OTHER = {
    "seed": (["--seed", 1], None),
    "samples": (["--samples", 3], None),
    "dtype": (["--dtype", "float64"], None),
    "batch size": (["--batch-size", 9], None),
    "temperature": (["--temperature", 0.5], None),
    "top-p": (["--top-p", 0.5], None),
    "top-k": (["--top-k", 5], None),
    "min-p": (["--min-p", 0.5], None),
    "stop": (["--stop", "zz"], None),
    "policy_id": ([], _other_weights),
    "policy_step": ([], _later_step),
    "model": (["--model", "moved"], _other_place),
}


@pytest.mark.parametrize(("options", "change"), OTHER.values(), ids=OTHER)
def test_unfinished_work_is_gone_on_with_by_the_same_settings_and_policy_only(
    pivots, tmp_path, tiny, monkeypatch, options, change
):
    """Killed while the model was loaded, and while a first record was written."""
    monkeypatch.chdir(tmp_path)
    partial, kept = Path(".b.jsonl.partial"), Path("kept")

    def killed(*arguments):
        kept.write_bytes(partial.read_bytes() + b'{"problem_id":')
        raise UserError("killed")

    monkeypatch.setattr("rlvr_cli.commands.resample.load_engine", killed)
    shutil.copytree(tiny.path, "policy")
    write(tmp_path / "p.jsonl", pivots[:2])
    common = ["resample", "p.jsonl", "--model", "policy", "-o", "b.jsonl"]
    rlvr(*common, code=1)
    shutil.copy(kept, partial)
    assert rlvr(*common, "--resume", code=1) == "rlvr resample: killed\n"  # it went on, up to the model
    shutil.copy(kept, partial)
    if change is not None:
        change(tmp_path / "policy")
    assert "made with other options, inputs or policy" in rlvr(*common, "--resume", *options, code=1)


def test_seed_and_stop_and_samples_take_effect(work, pivots, tmp_path):
    source = write(tmp_path / "p.jsonl", pivots[:2])
    rlvr("resample", source, "--seed", 1, "-o", tmp_path / "seeded.jsonl")
    seeded, plain = read(tmp_path / "seeded.jsonl"), read(work / "branches.jsonl")[:16]
    assert [branch["rollout_id"] for branch in seeded] == [branch["rollout_id"] for branch in plain]
    assert all(one["seed"] != other["seed"] for one, other in zip(seeded, plain, strict=True))
    rlvr("resample", source, "--stop", ". ", "--samples", 2, "--device", "cpu", "-o", tmp_path / "stopped.jsonl")
    stopped = read(tmp_path / "stopped.jsonl")
    assert [branch["group_size"] for branch in stopped] == [2, 2, 2, 2]
    for branch in stopped:
        new = branch["completion_token_ids"][branch["prefix_len"] :]
        assert 0 < len(new) < 20  # a step of a chain, at most
        assert branch["finish_reason"] == "stop"


def test_another_policy_than_the_parents_is_said_once(pivots, tmp_path, tiny):
    source = write(tmp_path / "p.jsonl", [{**it, "policy_id": "another"} for it in pivots[:3]])
    told = rlvr("resample", source, "--samples", 1, "-o", tmp_path / "b.jsonl")
    assert told.count("warning") == 1
    assert f"3 pivots of another policy than tiny ({tiny.id}), the first at {source}:1" in told
    for branch, parent in zip(read(tmp_path / "b.jsonl"), pivots, strict=False):
        assert branch["policy_id"] == tiny.id
        assert branch["pivot_id"] == stable_hash(parent["rollout_id"], parent["prefix_len"], tiny.id, 0)


def test_what_is_cut_and_what_has_no_room_is_said(pivots, tmp_path):
    short = {**pivots[0], "max_tokens": pivots[0]["prefix_len"] + 2}
    long = {"completion_token_ids": [36] * 600, "logprobs": [-1.0] * 600, "finish_reason": "length", "max_tokens": 999}
    source = write(tmp_path / "p.jsonl", [short, {**pivots[1], **long, "prefix_len": 600}])
    call = ["resample", source, "--samples", 3, "--metrics", tmp_path / "m.jsonl", "-o", tmp_path / "b.jsonl"]
    assert "; 3 cut by their max_tokens; 3 with a prefix that fills the model's context" in rlvr(*call)
    (line,) = read(tmp_path / "m.jsonl")
    assert (line["finish_stop"], line["finish_length"], line["finish_error"]) == (0, 3, 3)
    assert line["tokens_generated"] == 3 * 2


def test_bad_pivots_can_be_set_aside(pivots, tmp_path):
    records = [pivots[0], {**pivots[1], "prefix_len": 999}, {**pivots[2], "top_p": 0.5}, pivots[0], pivots[3]]
    source, rejects = write(tmp_path / "p.jsonl", records), tmp_path / "rejects.jsonl"
    skip = ["--on-error", "skip", "--rejects", rejects]
    rlvr("resample", source, "--samples", 2, *skip, "-o", tmp_path / "b.jsonl")
    assert [branch["pivot_id"] for branch in read(tmp_path / "b.jsonl")[::2]] == [
        pivots[0]["pivot_id"],
        pivots[3]["pivot_id"],
    ]
    assert [reject["where"] for reject in read(rejects)] == [f"{source}:{line}" for line in (2, 3, 4)]


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--samples", 0, "--samples is 0, expected at least 1"),
        ("--batch-size", 0, "--batch-size is 0, expected at least 1"),
        ("--temperature", -1, "--temperature is -1.0, expected 0 (greedy) or a number"),
        ("--top-p", 0, "expected 0 < --top-p <= 1"),
        ("--stop", "", "--stop is empty"),
    ],
)
def test_wrong_usage(work, option, value, told):
    assert told in rlvr("resample", work / "pivots.jsonl", option, value, code=2)


MISTAKES = {
    "a scored rollout": (
        lambda good: [{**good, "prefix_len": None}],
        "1: prefix_len is missing; resample reads pivots",
    ),
    "behind the end": (
        lambda good: [{**good, "prefix_len": len(good["completion_token_ids"])}],
        "1: prefix_len is ",
    ),
    "another tokenizer": (lambda good: [{**good, "prompt_token_ids": [5000]}], "1: token id 5000 is beyond the voc"),
    "twice": (lambda good: [good, good], "2: pivot_id {pivot_id} stands at {source}:1 already; rlvr convert --drop-du"),
    "no temperature": (lambda good: [{**good, "temperature": -1.0}], "1: cannot be sampled as its parent was: --temp"),
}


@pytest.mark.parametrize(("change", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_pivot_is_one_clear_line(pivots, tmp_path, change, told):
    source = write(tmp_path / "p.jsonl", change(pivots[0]))
    (line,) = rlvr("resample", source, "-o", tmp_path / "b.jsonl", code=1).splitlines()
    expected = told.format(pivot_id=pivots[0]["pivot_id"], source=source)
    assert line.startswith(f"rlvr resample: {source}:{expected}")
    assert not (tmp_path / "b.jsonl").exists()


def test_no_model_is_loaded_for_a_wrong_pivot(pivots, tmp_path):
    source = write(tmp_path / "p.jsonl", [*pivots, {**pivots[0], "prefix_len": -1}])
    code = "import sys, atexit\natexit.register(lambda: print('torch' in sys.modules))\n"
    code += f"sys.argv[1:] = ['resample', {str(source)!r}]\nfrom rlvr_cli.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        f"rlvr resample: {source}:17: prefix_len is -1, expected 0 to "
        f"{len(pivots[0]['completion_token_ids'])}, the number of completion_token_ids"
    )
    assert done.stderr.splitlines()[1:] == ["False"]  # torch, of which a good run says True


def test_a_killed_run_resumes_to_the_same_records(pivots, tmp_path):
    """In float32: a resumed run begins where a batch began, so the shapes and their rounding are the same."""
    many = [pivot(parent, length) for parent in pivots for length in (60, 80, 100)]
    source, output = write(tmp_path / "p.jsonl", many), tmp_path / "b.jsonl"
    arguments = [*map(str, ["resample", source, "--batch-size", 14, "--samples", 4])]
    rlvr(*arguments, "-o", tmp_path / "whole.jsonl")
    arguments += ["--resume", "-o", str(output)]
    partial = tmp_path / ".b.jsonl.partial"
    with subprocess.Popen([*RLVR, *arguments], env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (partial.exists() and partial.stat().st_size > 70_000) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    os.truncate(partial, partial.stat().st_size - 10)  # torn in the middle of a group
    told = rlvr(*arguments)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    fresh = int(told.split(" branches of ")[0].split()[-1])
    assert 0 < fresh < len(many) * 4  # what was done is not done again
    assert fresh % 12 == 0
    assert "resumed: " in told


def test_rollout_verify_find_pivots_resample_verify_in_one_pipe(tmp_path):
    pipe = (
        "rlvr rollout tiny:deep --shard 0/40 --samples 2 --max-tokens 200 | rlvr verify | tee scored.jsonl"
        " | rlvr find-pivots | rlvr resample --samples 16 | rlvr verify > branches.jsonl"
    ).replace("rlvr ", f"{' '.join(RLVR)} ")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], capture_output=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    failed = {it["rollout_id"]: it for it in read(tmp_path / "scored.jsonl") if it["reward"] == 0}
    branches = read(tmp_path / "branches.jsonl")
    assert len(branches) == 16 * len(failed) > 0  # each failed rollout has a pivot
    for branch in branches:
        parent = failed[branch["parent_rollout_id"]]
        # judged by the whole answer: the parent's beginning and the new tokens
        assert (
            branch["completion_token_ids"][: branch["prefix_len"]]
            == (parent["completion_token_ids"][: branch["prefix_len"]])
        )
        assert len(branch["completion_token_ids"]) > branch["prefix_len"]
        assert branch["verdict"] in ("correct", "wrong", "no_answer", "truncated")
        assert branch["reward"] == (branch["verdict"] == "correct")
        assert branch["problem_id"] == parent["problem_id"]
