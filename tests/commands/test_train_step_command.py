"""`rlvr train-step` on what the embedded policy really sampled: main rollouts and the branches of their failures."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import torch
from typer.testing import CliRunner

from rlvr_cli.cli import app
from rlvr_cli.engines.engine import Sampling
from rlvr_cli.engines.models import load_model
from rlvr_cli.records import Record
from rlvr_cli.stages import resample as branches
from rlvr_cli.stages import rollout as main
from rlvr_cli.stages.verify import verify
from rlvr_cli.tiny.problems import generate
from rlvr_cli.training.batches import Sequence, mini_batches

MAX_TOKENS = 120


@pytest.fixture(scope="module")
def sampled(tiny, tokens, make_engine) -> tuple[list[Record], list[Record]]:
    """Scored main rollouts of 12 problems, and scored branches from the middle of 10 that failed. In float64."""
    engine = make_engine(dtype="float64")
    problems = [Record(problem) for problem in list(generate("learnable"))[100::25]]  # the first are easy
    plan = main.Plan(tiny, 4, MAX_TOKENS, 0, Sampling())
    rollouts = list(verify(main.rollout(problems, engine, plan, tokens.prompt_ids, tokens.text)))
    failed = [record for record in rollouts if record["reward"] == 0 and record["finish_reason"] == "stop"][:10]
    pivots = [record.extended(prefix_len=len(record["completion_token_ids"]) // 2) for record in failed]
    grown = list(verify(branches.resample(pivots, engine, branches.Plan(tiny, 4, 0, Sampling()), tokens.text)))
    # the embedded policy seldom recovers, so that some branches get their rewards by hand
    for record in grown:
        record["reward"] = float(record["sample_index"] == 1 or record["reward"])
    return rollouts, grown


@pytest.fixture
def files(sampled, tmp_path, monkeypatch) -> Path:
    """A directory with `main.jsonl` and `branch.jsonl`."""
    monkeypatch.chdir(tmp_path)
    for name, records in zip(("main", "branch"), sampled, strict=True):
        write(tmp_path / f"{name}.jsonl", records)
    return tmp_path


def write(path: Path, records: list[Record]) -> None:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))


def train_step(*arguments: str, code: int = 0, output: str = "p1", fresh: bool = True) -> tuple[dict, str]:
    """Run the command in float64, all rollouts one mini-batch unless told otherwise; its card and what it told."""
    if fresh:
        shutil.rmtree(output, ignore_errors=True)
    common = ["--dtype", "float64", "--mini-batch", "0", "-o", output]
    done = CliRunner().invoke(app, ["train-step", *common, *arguments])
    assert done.exit_code == code, done.output
    return orjson.loads((Path(output) / "rlvr.json").read_bytes()) if code == 0 else {}, done.stderr


def plain_loss(model, records: list[Record], aggregation: str) -> torch.Tensor:
    """One stream's loss by the formulas, a record at a time: dr-grpo, clip, dual clip, masked inheritance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["group_id"], []).append(record)
    kept = [
        (record, record["reward"] - sum(other["reward"] for other in group) / len(group))
        for group in groups.values()
        for record in group
        if len({other["reward"] for other in group}) > 1
    ]
    own = [len(record["completion_token_ids"]) - record.get("prefix_len", 0) for record, _ in kept]
    total = torch.zeros((), dtype=torch.float64)
    for (record, advantage), length in zip(kept, own, strict=True):
        ids = torch.tensor(record["prompt_token_ids"] + record["completion_token_ids"])
        logp = torch.log_softmax(model(input_ids=ids[None]).logits[0, :-1], -1).gather(1, ids[1:, None])[-length:, 0]
        ratio = (logp - torch.tensor(record["logprobs"][-length:], dtype=torch.float64)).exp()
        loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
        if advantage < 0:
            loss = loss.clamp(max=-3 * advantage)
        denominator = {
            "token-mean": sum(own),
            "sequence-mean": len(kept) * length,
            "constant": len(kept) * MAX_TOKENS,
        }[aggregation]
        total = total + loss.sum() / denominator
    return total


@pytest.mark.parametrize(
    ("options", "of_main", "of_branch"),
    [((), 1, 1), (("--branch-weight", "0.5"), 1, 0.5), (("--alpha", "0.2"), 0.8, 0.2)],
)
@pytest.mark.parametrize("aggregation", ["token-mean", "sequence-mean", "constant"])
def test_loss_and_gradient_are_those_of_the_formulas(
    files, sampled, tiny, tmp_path, aggregation, options, of_main, of_branch
):
    card, _ = train_step("main.jsonl", "branch.jsonl", "--aggregation", aggregation, *options)
    model = load_model(tiny, "float64", "cpu")
    loss = of_main * plain_loss(model, sampled[0], aggregation) + of_branch * plain_loss(model, sampled[1], aggregation)
    loss.backward()
    norm = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).norm()
    assert card["metrics"]["loss"] == pytest.approx(loss.item(), rel=1e-6, abs=1e-9)
    assert card["metrics"]["grad_norm"] == pytest.approx(norm.item(), rel=1e-6)
    assert norm > 0.01


def test_each_stream_has_its_figures_and_its_settings_are_on_the_card(files, sampled):
    card, told = train_step("branch.jsonl", "main.jsonl", "--branch-weight", "0.5")
    metrics = card["metrics"]
    assert list(metrics["main"]) == list(metrics["branch"])
    for name, records in zip(("main", "branch"), sampled, strict=True):
        figures = metrics[name]
        assert figures["rollouts"] == len(records)
        assert figures["groups"] == len({record["group_id"] for record in records})
        assert figures["reward_mean"] == pytest.approx(sum(r["reward"] for r in records) / len(records))
        assert figures["ratio"] == pytest.approx(1, abs=1e-5)
        assert figures["logprob_gap_max"] < 1e-5  # float32 rounding of the records' logprobs
    assert metrics["branch"]["groups_mixed"] == metrics["branch"]["groups"] == 10
    trained = [len(r["completion_token_ids"]) - r["prefix_len"] for r in sampled[1]]
    assert metrics["branch"]["tokens_trained"] == sum(trained)
    assert metrics["tokens_trained"] == sum(metrics[name]["tokens_trained"] for name in ("main", "branch"))
    assert metrics["loss"] == pytest.approx(metrics["main"]["policy_loss"] + 0.5 * metrics["branch"]["policy_loss"])
    assert card["settings"]["update"]["loss"]["branch_weight"] == 0.5
    assert card["settings"]["update"]["loss"]["alpha"] is None
    share = metrics["main"]["zero_advantage_share"]
    assert f"policy 1: {share:.0%} of 12 main groups without a signal (" in told
    assert "; 0% of 10 branch groups without a signal (0 all wrong, 0 all right); 1 update on " in told
    assert f"{metrics['main']['rollouts_trained']} rollouts and 40 branches" in told


def test_what_is_stored_of_inherited_tokens_moves_nothing(files, sampled):
    card, _ = train_step("main.jsonl", "branch.jsonl", "--learning-rate", "1e-3", "--warmup", "0")
    changed = [record.extended(advantages=[5.0] * len(record["logprobs"])) for record in sampled[1]]
    for record in changed:
        inherited = record["prefix_len"]
        record["logprobs"] = [-30.0] * inherited + record["logprobs"][inherited:]
    write(files / "branch.jsonl", changed)
    again, told = train_step("main.jsonl", "branch.jsonl", "--learning-rate", "1e-3", "--warmup", "0")
    for field in ("policy_id", "records_digest"):
        assert again[field] == card[field]
    for one in (card, again):
        del one["metrics"]["seconds"]
    assert again["metrics"] == card["metrics"]
    assert "the records' logprobs are" not in told


def test_one_stream_alone_is_a_step_too(files):
    card, told = train_step("main.jsonl")
    assert card["metrics"]["branch"]["rollouts"] == card["metrics"]["branch"]["tokens_trained"] == 0
    assert card["metrics"]["branch"]["zero_advantage_share"] is None
    assert card["metrics"]["loss"] == pytest.approx(card["metrics"]["main"]["policy_loss"])
    assert "branch" not in told
    card, told = train_step("branch.jsonl", "--alpha", "0.5")
    assert card["metrics"]["main"]["policy_loss"] is None
    assert card["metrics"]["loss"] == pytest.approx(0.5 * card["metrics"]["branch"]["policy_loss"])
    assert "policy 1: 0% of 10 branch groups without a signal" in told
    assert "main groups" not in told


def test_warnings_name_the_stream(files, sampled):
    odd = [record.extended() for record in sampled[1][:-1]]
    for record in odd:
        record["logprobs"] = [value - 0.1 for value in record["logprobs"]]
    odd[0] = Record({key: value for key, value in odd[0].items() if key != "reward"} | {"verdict": "error"})
    write(files / "branch.jsonl", odd)
    _, told = train_step("main.jsonl", "branch.jsonl")
    assert "warning: branch: 1 groups are smaller than their group_size" in told
    assert "warning: branch: 1 rollouts could not be judged" in told
    assert "warning: branch: the records' logprobs are 0.100 from this policy's on average" in told
    assert "main:" not in told


def test_one_wrong_logprob_is_warned_of(files, sampled, tmp_path):
    """In a stream's first mini-batch: later on the policy's own motion is in the distance, and is no fault."""
    for mini_batch in ("0", "8"):
        odd = [record.extended(logprobs=list(record["logprobs"])) for record in sampled[1]]
        order = mini_batches([_bare(record) for record in odd], int(mini_batch), 0, 0)
        wrong = next(record for record in odd if record["rollout_id"] == order[0][0].id)
        wrong["logprobs"][-1] -= 3
        write(files / "branch.jsonl", odd)
        _, told = train_step("branch.jsonl", "--mini-batch", mini_batch, "--learning-rate", "1e-4")
        assert told.count("warning") == 1
        mean, largest = re.search(r"logprobs are (.*) from this policy's on average, (.*) at most", told).groups()
        assert float(mean) < 0.02  # it would not tell
        assert largest == "3.00"
    write(files / "branch.jsonl", sampled[1])
    assert "warning" not in train_step("branch.jsonl", "--mini-batch", "8", "--learning-rate", "1e-3")[1]


def _bare(record: Record) -> Sequence:
    return Sequence(record["rollout_id"], (), (), (), 0.0, 1.0, 1, "branch")


def test_a_rollout_that_is_there_twice_can_be_set_aside(files):
    told = train_step("main.jsonl", "main.jsonl", "branch.jsonl", code=1)[1]
    assert "main.jsonl:1: rollout_id " in told
    assert " stands at main.jsonl:1 already; is a file named twice?" in told
    card, _ = train_step("main.jsonl", "branch.jsonl")
    again, told = train_step("main.jsonl", "branch.jsonl", "main.jsonl", "--on-error", "skip")
    assert (again["policy_id"], again["records_digest"]) == (card["policy_id"], card["records_digest"])
    assert "48 bad records set aside" in told


def test_without_a_weight_there_is_no_step(files, tiny):
    """The embedded policy's weights, to the bit: weight decay alone is no update."""
    card, told = train_step("main.jsonl", "--alpha", "1", "--weight-decay", "0.5", "--dtype", "float32")
    assert card["policy_id"] == tiny.id
    assert "warning: no stream with a weight (--alpha, --branch-weight) has a signal: the policy stays as it is" in told
    assert "; 0 updates on 0 rollouts, 0 tokens" in told
    card, told = train_step("main.jsonl", "branch.jsonl", "--alpha", "1")
    assert card["metrics"]["main"]["rollouts_trained"] == card["metrics"]["main"]["tokens_trained"] == 0
    assert card["metrics"]["main"]["policy_loss"] is None
    assert "; 1 update on 0 rollouts and 40 branches" in told
    assert "warning" not in told


def test_epsilon_is_added_to_the_deviation_of_grpo(files, sampled):
    default, _ = train_step("branch.jsonl", "--advantage", "grpo")
    given, _ = train_step("branch.jsonl", "--advantage", "grpo", "--epsilon", "1e-6")
    halved, _ = train_step("branch.jsonl", "--advantage", "grpo", "--epsilon", "0.5")
    assert default["metrics"]["grad_norm"] == given["metrics"]["grad_norm"] > 1.5 * halved["metrics"]["grad_norm"]
    assert default["settings"]["epsilon"] == 1e-6


def test_a_step_that_is_made_already_is_left_until_a_branch_changes(files, sampled):
    """Branches sampled again with another seed have the same ids: their tokens count too."""
    card, _ = train_step("main.jsonl", "branch.jsonl")
    write(files / "branch.jsonl", sampled[1][::-1])
    same, told = train_step("main.jsonl", "branch.jsonl", "--resume", fresh=False)
    assert "left as it is" in told
    assert same == card
    # a record that nothing is learnt from is in the metrics all the same
    more = [*sampled[1], sampled[1][0].extended(group_id="p", pivot_id="p", rollout_id="p-0")]
    write(files / "branch.jsonl", more)
    card, told = train_step("main.jsonl", "branch.jsonl", "--resume", fresh=False)
    assert "left as it is" not in told
    assert card["metrics"]["branch"]["groups_unjudged"] == 1
    other = [record.extended() for record in sampled[1]]
    other[0]["completion_token_ids"] = [*other[0]["completion_token_ids"][:-1], 7]
    write(files / "branch.jsonl", other)
    changed, told = train_step("main.jsonl", "branch.jsonl", "--resume", fresh=False)
    assert "left as it is" not in told
    assert changed["policy_id"] != card["policy_id"]
    reweighted, _ = train_step("main.jsonl", "branch.jsonl", "--resume", "--alpha", "0.5", fresh=False)
    assert reweighted["policy_id"] != changed["policy_id"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--alpha", "0.5", "--branch-weight", "1"), "--alpha blends it in; give one of them"),
        (("--alpha", "1.5"), "--alpha is 1.5, expected a number from 0 to 1"),
        (("--alpha", str(math.nan)), "--alpha is nan"),
        (("--branch-weight", "-1"), "--branch-weight is -1.0, expected a number from 0 on"),
        (("--epsilon", "1e-4"), "--epsilon is added to the deviation in --advantage grpo; leave it out here"),
        (("--epsilon", "-1", "--advantage", "grpo"), "--epsilon is -1.0, expected a number from 0 on"),
    ],
)
def test_settings_that_make_no_sense_are_refused(files, options, told):
    assert told in train_step("main.jsonl", *options, code=2)[1]


def test_pivots_are_no_rollouts(files, sampled):
    write(files / "pivots.jsonl", [sampled[0][0].extended(prefix_len=0)])
    told = train_step("main.jsonl", "pivots.jsonl", code=1)[1]
    assert "pivots.jsonl:1: prefix_len stands on a main rollout: a pivot; run rlvr resample on it first" in told


def test_rollouts_that_begin_with_other_tokens_are_no_group(files, sampled):
    for change in (
        lambda branch: branch.update(prefix_len=1),
        lambda branch: branch.update(prompt_token_ids=[1, *branch["prompt_token_ids"]]),
        lambda branch: branch.update(completion_token_ids=[9, *branch["completion_token_ids"][1:]]),
    ):
        changed = [Record(record) for record in sampled[1]]
        change(changed[1])
        write(files / "branch.jsonl", changed)
        told = train_step("branch.jsonl", code=1)[1]
        assert f"branch.jsonl:2: group_id {changed[1]['group_id']} begins with other tokens at branch.jsonl:1" in told


@pytest.mark.parametrize("column", ["reward", "shaping"])
def test_a_reward_beyond_all_sense_is_refused(files, sampled, column):
    write(files / "main.jsonl", [sampled[0][0].extended(**{column: 1e308}), *sampled[0][1:]])
    assert f"main.jsonl:1: {column} is 1e+308, expected less than 1e9" in train_step("main.jsonl", code=1)[1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_standard_output_is_no_failure_of_the_step(files):
    call = [sys.executable, "-m", "rlvr_cli", "train-step", "main.jsonl", "-o", "p1"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
    assert b"warning: standard output cannot be written" in done.stderr
    assert (files / "p1" / "rlvr.json").is_file()
