"""The loop as a user runs it: real commands, the embedded policy, files and pipes, kills in the middle."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from rlvr_cli.policy import OPTIMIZER

RLVR = [sys.executable, "-m", "rlvr_cli"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])}


def rlvr(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [*RLVR, *map(str, arguments)], capture_output=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == code, done.stderr.decode()
    return done


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """A line as typed, with `rlvr` standing for this checkout's."""
    typed = command.replace("rlvr ", f"{' '.join(RLVR)} ")
    return subprocess.run(["bash", "-o", "pipefail", "-c", typed], capture_output=True, env=ENVIRONMENT, cwd=cwd)


def read(path: Path) -> list[dict]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """A directory with one step's files: problems, rollouts, scored."""
    directory = tmp_path_factory.mktemp("loop")
    rlvr("select", "tiny:learnable", "--batch", "24", "--method", "uniform", "-o", directory / "problems.jsonl")
    rlvr(
        *("rollout", directory / "problems.jsonl", "--samples", "4", "--max-tokens", "120", "--dtype", "float64"),
        *("--metrics", directory / "metrics.jsonl", "-o", directory / "rollouts.jsonl"),
    )
    rlvr("verify", directory / "rollouts.jsonl", "-o", directory / "scored.jsonl")
    return directory


def test_the_pipe_of_the_readme_works_as_typed(tmp_path):
    done = shell("rlvr rollout < /dev/null | rlvr verify > scored.jsonl", tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    records = read(tmp_path / "scored.jsonl")
    assert len(records) == 400 * 8
    assert {record["verdict"] for record in records} >= {"correct", "wrong"}
    assert b"tiny:learnable" in done.stderr


def test_head_ends_a_rollout_quietly(tmp_path):
    done = shell("rlvr rollout tiny:eval --samples 2 --batch-size 8 --max-tokens 60 | head -1", tmp_path)
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_rollouts_hold_what_the_design_promises(work, tiny):
    rollouts = read(work / "rollouts.jsonl")
    assert len(rollouts) == 24 * 4
    assert len({record["rollout_id"] for record in rollouts}) == len(rollouts)
    for record in rollouts:
        assert record["policy_id"] == tiny.id
        assert record["tokens_exact"] is True
        assert record["temperature"] == 1.0
        assert (record["top_p"], record["top_k"], record["min_p"], record["max_tokens"]) == (1.0, 0, 0.0, 120)
        assert record["round"] == 0
        assert record["group_size"] == 4
    (line,) = read(work / "metrics.jsonl")
    assert line["tokens_generated"] == sum(len(record["completion_token_ids"]) for record in rollouts)


@pytest.mark.parametrize(
    "shape",
    [("--batch-size", "3"), ("--shard",)],
    ids=["batch size", "shards"],
)
def test_ids_do_not_depend_on_the_shape_of_the_run(work, tmp_path, shape):
    whole = {r["rollout_id"]: r["completion_token_ids"] for r in read(work / "rollouts.jsonl")}
    backwards = tmp_path / "backwards.jsonl"
    backwards.write_bytes(b"".join((work / "problems.jsonl").read_bytes().splitlines(keepends=True)[::-1]))
    common = ["rollout", backwards, "--samples", "4", "--max-tokens", "120", "--dtype", "float64"]
    if shape == ("--shard",):
        for part in "01":
            rlvr(*common, "--shard", f"{part}/2", "-o", tmp_path / f"{part}.jsonl")
        parts = [read(tmp_path / f"{part}.jsonl") for part in "01"]
        assert all(parts)
        found = [record for part in parts for record in part]
    else:
        rlvr(*common, *shape, "-o", tmp_path / "all.jsonl")
        found = read(tmp_path / "all.jsonl")
    assert {r["rollout_id"]: r["completion_token_ids"] for r in found} == whole


def killed_when(arguments: list[str | Path], ready, sig: int = signal.SIGKILL) -> int:
    """Run a command, send it a signal as soon as `ready()` holds; its exit code."""
    process = subprocess.Popen(
        [*RLVR, *map(str, arguments)], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not ready() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(sig)
    return process.wait()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_killed_rollout_resumes_to_the_same_records(work, tmp_path, dtype):
    """In float32 too: a resumed run begins where a batch began, so the shapes and their rounding are the same."""
    output, partial = tmp_path / "rollouts.jsonl", tmp_path / ".rollouts.jsonl.partial"
    arguments = ["rollout", work / "problems.jsonl", "--samples", "4", "--batch-size", "14", "--dtype", dtype]
    whole = tmp_path / "whole.jsonl"
    rlvr(*arguments, "-o", whole)
    arguments += ["--resume", "-o", output]
    code = killed_when(arguments, lambda: partial.exists() and partial.stat().st_size > 70_000)
    assert code == -signal.SIGKILL
    assert not output.exists()
    # torn in the middle of a unit, and in the middle of a batch
    os.truncate(partial, partial.stat().st_size - 10)
    done = rlvr(*arguments)
    assert output.read_bytes() == whole.read_bytes()
    assert not partial.exists()
    fresh = int(done.stderr.split(b" rollouts, ")[0].split()[-1])
    assert 0 < fresh < 24 * 4  # what was done is not done again
    assert fresh % 12 == 0


def test_a_partial_of_other_settings_is_refused(work, tmp_path):
    output, partial = tmp_path / "r.jsonl", tmp_path / ".r.jsonl.partial"
    arguments = ["rollout", work / "problems.jsonl", "--samples", "4", "--batch-size", "8", "-o", output]
    killed_when(arguments, lambda: partial.exists() and partial.stat().st_size > 8_000)
    message = rlvr(*arguments, "--resume", "--seed", "1", code=1).stderr.decode()
    assert str(output) in message or str(partial) in message
    assert "--force" in message


def test_a_step_writes_the_next_policy_and_moves_the_optimizer_on(work, tmp_path, tiny):
    first, second = tmp_path / "p1", tmp_path / "p2"
    done = rlvr(
        *("train-step", work / "scored.jsonl", "--learning-rate", "4e-4", "--metrics", tmp_path / "m.jsonl"),
        *("-o", first),
    )
    metrics = orjson.loads(done.stdout)
    (line,) = read(tmp_path / "m.jsonl")
    assert {**line, **metrics} == line
    assert metrics["policy_step"] == 1
    main = metrics["main"]
    assert main["groups"] == 24
    assert main["groups_mixed"] + main["groups_all_wrong"] + main["groups_all_right"] == 24
    assert metrics["updates"] == 1
    assert 0 < main["logprob_gap_max"] < 1e-4
    assert metrics["grad_norm"] > 0
    assert main["entropy"] > 0
    card = orjson.loads((first / "rlvr.json").read_bytes())
    assert card["parent_policy_id"] == tiny.id
    assert card["policy_id"] == metrics["policy_id"] != tiny.id
    assert card["settings"]["update"]["learning_rate"] == 4e-4

    rollouts = tmp_path / "rollouts.jsonl"
    rlvr("rollout", work / "problems.jsonl", "--model", first, "--samples", "4", "-o", rollouts)
    assert {(r["policy_id"], r["policy_step"]) for r in read(rollouts)} == {(card["policy_id"], 1)}
    rlvr("verify", rollouts, "-o", tmp_path / "scored.jsonl")
    assert (first / OPTIMIZER).is_file()
    call = ["train-step", tmp_path / "scored.jsonl", "--model", first, "--learning-rate", "4e-4", "-o", second]
    done = rlvr(*call)
    assert orjson.loads(done.stdout)["updates_before"] == 1
    # what is whole is left by --resume: the optimizer's state has gone on with it
    again = rlvr(*call, "--resume")
    assert orjson.loads(again.stdout)["policy_id"] == orjson.loads(done.stdout)["policy_id"]
    assert b"left as it is" in again.stderr
    assert not (first / OPTIMIZER).exists()
    assert (second / OPTIMIZER).is_file()
    assert (first / "model.safetensors").is_file()


def test_the_same_records_in_any_order_make_the_same_policy(work, tmp_path):
    backwards = tmp_path / "backwards.jsonl"
    backwards.write_bytes(b"".join((work / "scored.jsonl").read_bytes().splitlines(keepends=True)[::-1]))
    for name, source in (("a", work / "scored.jsonl"), ("b", backwards)):
        rlvr("train-step", source, "--learning-rate", "1e-3", "--dtype", "float64", "-o", tmp_path / name)
    cards = [orjson.loads((tmp_path / name / "rlvr.json").read_bytes()) for name in "ab"]
    assert cards[0]["policy_id"] == cards[1]["policy_id"]
    assert cards[0]["records_digest"] == cards[1]["records_digest"]


@pytest.mark.parametrize("written", ["", "model.safetensors", OPTIMIZER])
def test_a_killed_step_leaves_the_next_policy_out_and_can_be_run_again(work, tmp_path, written):
    output, partial = tmp_path / "p1", tmp_path / ".p1.partial"
    arguments = ["train-step", work / "scored.jsonl", "--epochs", "3", "-o", output]
    assert killed_when(arguments, (partial / written).exists) == -signal.SIGKILL
    assert not output.exists() or (output / "rlvr.json").is_file()
    rlvr("train-step", work / "scored.jsonl", "-o", output)
    assert (output / "rlvr.json").is_file()
    assert not partial.exists()


def test_a_killed_verify_resumes_to_the_same_records(work, tmp_path):
    many = tmp_path / "many.jsonl"
    rollouts = read(work / "rollouts.jsonl")
    records = [{**r, "rollout_id": f"{r['rollout_id']}-{i}"} for i in range(100) for r in rollouts]
    many.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    rlvr("verify", many, "-o", tmp_path / "whole.jsonl")
    output, partial = tmp_path / "scored.jsonl", tmp_path / ".scored.jsonl.partial"
    arguments = ["verify", many, "--resume", "-o", output]
    assert killed_when(arguments, lambda: partial.exists() and partial.stat().st_size > 100_000) == -signal.SIGKILL
    assert not output.exists()
    rlvr(*arguments)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_step_without_a_signal_goes_on_with_the_same_weights(work, tmp_path, tiny):
    flat = tmp_path / "flat.jsonl"
    wrong = [orjson.dumps({**r, "reward": 0.0, "verdict": "wrong"}) for r in read(work / "scored.jsonl")]
    flat.write_bytes(b"\n".join(wrong) + b"\n")
    done = rlvr("train-step", flat, "-o", tmp_path / "p1")
    metrics = orjson.loads(done.stdout)
    assert (metrics["updates"], metrics["main"]["zero_advantage_share"]) == (0, 1.0)
    assert metrics["policy_id"] == tiny.id
    assert b"no group has a signal" in done.stderr


def test_a_step_without_records_is_no_step(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")
    told = rlvr("train-step", tmp_path / "empty.jsonl", "-o", tmp_path / "p1", code=1).stderr.decode()
    assert "no records: nothing to train on" in told
    assert not (tmp_path / "p1").exists()


def test_a_step_warns_of_what_looks_wrong(work, tmp_path):
    """Logprobs that this policy does not give, a group cut short, a rollout that could not be judged."""
    odd = tmp_path / "odd.jsonl"
    records = read(work / "scored.jsonl")[:-1]
    for record in records:
        record["logprobs"] = [value - 0.1 for value in record["logprobs"]]
    del records[0]["reward"]
    records[0]["verdict"] = "error"
    odd.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    told = rlvr("train-step", odd, "-o", tmp_path / "p1").stderr.decode()
    assert "0.100 from this policy's on average" in told
    assert "1 groups are smaller than their group_size" in told
    assert "1 rollouts could not be judged" in told


def test_statistics_lead_to_the_next_batch(work, tmp_path):
    stats = tmp_path / "stats.jsonl"
    done = rlvr("bucketize", work / "scored.jsonl", "-o", stats)
    assert b"E_K" in done.stderr
    rows = read(stats)
    assert len(rows) == 24
    mixed = {row["problem_id"] for row in rows if 0 < row["n_correct"] < row["n"]}
    assert mixed
    chosen = tmp_path / "next.jsonl"
    rlvr("select", "tiny:learnable", "--stats", stats, "--step", "1", "--batch", len(mixed), "-o", chosen)
    assert {record["problem_id"] for record in read(chosen)} == mixed
    assert all("mixed" in record["select_reason"] for record in read(chosen))


MISTAKES = {
    "malformed line": ("rollout", b'{"prompt": "Start"}\n{"prompt": \n', r"bad.jsonl:2"),
    "missing field": ("rollout", b'{"answer": "4 2"}\n', "bad.jsonl:1: prompt is missing"),
    "wrong type": ("rollout", b'{"prompt": 7}\n', "bad.jsonl:1: prompt is 7, expected a string"),
    "twice": ("rollout", b'{"prompt": "Start"}\n' * 2, "bad.jsonl:2: problem_id"),
    "unknown verifier": (
        "verify",
        b'{"completion": "4", "answer": "4", "verifier": "vibes"}\n',
        "bad.jsonl:1: verifier",
    ),
    "not judged": ("train-step", b'{"completion": "4", "answer": "4"}\n', "bad.jsonl:1: group_id is missing"),
}


@pytest.mark.parametrize(("command", "content", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_bad_record_is_one_clear_line_before_any_model_is_loaded(tmp_path, command, content, told):
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    loaded = tmp_path / "loaded"
    call = [command, str(bad), "-o", str(tmp_path / "out.jsonl")]
    code = f"import atexit, pathlib, sys; sys.argv[1:] = {call!r}\n"
    code += f"atexit.register(lambda: pathlib.Path({str(loaded)!r}).write_text(str('torch' in sys.modules)))\n"
    code += "from rlvr_cli.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert told in line
    assert done.stdout == b""
    assert loaded.read_text() == "False"
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("rollout", "tiny:eval", "--temperature", "inf"), 2, "--temperature is inf"),
        (("train-step", "tiny:eval", "--learning-rate", "nan", "-o", "p"), 2, "--learning-rate is nan"),
        (("bucketize", "tiny:eval", "--base", "-"), 1, "standard input is for the records themselves"),
        (("rollout", "tiny:eval", "--model", "nowhere"), 1, "model nowhere: is no directory; give `tiny`"),
        (("rollout", "tiny:eval", "--samples", "0"), 2, "--samples is 0"),
        (("rollout", "tiny:eval", "--temperature", "-1"), 2, "--temperature"),
        (("rollout", "tiny:eval", "--system", "be brief"), 1, "prompt is used as it is"),
        (("rollout", "tiny:eval", "--template", "missing.jinja"), 1, "--template missing.jinja"),
        (("rollout", "missing.jsonl"), 1, "missing.jsonl"),
        (("rollout", "tiny:eval", "-o", "/nowhere/out.jsonl"), 1, "/nowhere"),
        (("train-step", "tiny:eval"), 2, "-o DIR is missing"),
        (("train-step", "tiny:eval", "--kl-coef", "0.1", "-o", "p"), 2, "--kl-coef and --reference go together"),
    ],
)
def test_wrong_calls_say_what_to_do(arguments, code, told):
    assert told in rlvr(*arguments, code=code).stderr.decode()


def test_bad_records_can_be_set_aside(tmp_path):
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_bytes(b'{"prompt": "Start 1 2 . A: + 3 . =>"}\n{"prompt": 7}\nnonsense\n')
    rejects, output = tmp_path / "rejects.jsonl", tmp_path / "out.jsonl"
    common = ["rollout", mixed, "--samples", "2", "--on-error", "skip", "--rejects", rejects, "-o", output]
    rlvr(*common)
    assert len(read(output)) == 2
    assert [reject["where"].rsplit(":")[-1] for reject in read(rejects)] == ["2", "3"]
    rlvr(*common, "--max-rejects", "1", code=3)
    assert len(read(output)) == 2  # finished all the same
