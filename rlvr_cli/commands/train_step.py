"""`rlvr train-step`: options in, one update, the next policy out."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from rlvr_cli import policy as policies
from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.progress import progress
from rlvr_cli.commands.run import Run, counted
from rlvr_cli.errors import UsageError
from rlvr_cli.stages.train_step import train_step as stage
from rlvr_cli.training.batches import Checker
from rlvr_cli.training.settings import LossSettings, TrainSettings, UpdateSettings


@with_io(resumable=False, records_out=False)
def train_step(
    io: IO,
    model: Annotated[str, opt("--model", help="the policy that sampled the records, and is trained")] = "tiny",
    advantage: Annotated[
        Literal["dr-grpo", "grpo", "rloo"], opt("--advantage", help="how a group's rewards become advantages")
    ] = "dr-grpo",
    epsilon: Annotated[
        float | None,
        opt("--epsilon", help="added to the deviation that --advantage grpo divides by [default: 1e-6]", env=False),
    ] = None,
    aggregation: Annotated[
        Literal["token-mean", "sequence-mean", "constant"], opt("--aggregation", help="what the loss is a mean of")
    ] = "token-mean",
    clip_low: Annotated[float, opt("--clip-low", help="the ratio is clipped below at 1 minus this")] = 0.2,
    clip_high: Annotated[float, opt("--clip-high", help="the ratio is clipped above at 1 plus this")] = 0.28,
    dual_clip: Annotated[float, opt("--dual-clip", help="bound of the loss for negative advantages")] = 3.0,
    kl_coef: Annotated[float, opt("--kl-coef", help="weight of the KL term (k3) to --reference", env=False)] = 0.0,
    reference: Annotated[str | None, opt("--reference", help="reference policy of the KL term", env=False)] = None,
    entropy_coef: Annotated[float, opt("--entropy-coef", help="weight of the entropy bonus")] = 0.0,
    branch_weight: Annotated[
        float | None,
        opt(
            "--branch-weight",
            help="the loss is that of main rollouts + this (1) times that of branches; 0 leaves them out",
            env=False,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        opt("--alpha", help="the loss is 1 - this times that of main rollouts + this times branches", env=False),
    ] = None,
    old_logprobs: Annotated[
        Literal["sampler", "trainer"],
        opt("--old-logprobs", help="whose logprobs the ratio divides by; trainer adds importance weights"),
    ] = "sampler",
    learning_rate: Annotated[float, opt("--learning-rate", help="of AdamW")] = 1e-6,
    warmup: Annotated[int, opt("--warmup", help="updates over which the learning rate rises, over all steps")] = 8,
    weight_decay: Annotated[float, opt("--weight-decay", help="of AdamW")] = 0.0,
    max_grad_norm: Annotated[float, opt("--max-grad-norm", help="the gradient is scaled down to this norm")] = 1.0,
    mini_batch: Annotated[
        int, opt("--mini-batch", help="rollouts (main and branch) an update, nearly; 0: all at once")
    ] = 128,
    epochs: Annotated[int, opt("--epochs", help="passes over the step's rollouts")] = 1,
    micro_tokens: Annotated[
        int, opt("--micro-tokens", help="tokens (padding too) a forward pass; bounds memory, not the gradient")
    ] = 4096,
    seed: Annotated[int, opt("--seed", help="of the order of the mini-batches")] = 0,
    dtype: Annotated[Literal["float32", "float64"], opt("--dtype", help="of weights and gradient")] = "float32",
    device: Annotated[str, opt("--device", help="cpu, cuda, or auto for the better one here")] = "auto",
    off_policy: Annotated[bool, opt("--off-policy", help="take records of other policies too")] = False,
    keep_optimizer: Annotated[
        bool, opt("--keep-optimizer", help="leave the old policy its optimizer state, to train it again")
    ] = False,
) -> None:
    """Make one policy-gradient update: scored main and branch rollouts in, the next policy out (-o DIR)."""
    if io.output is None:
        raise UsageError("-o DIR is missing: the directory of the next policy")
    if (kl_coef != 0) != (reference is not None):
        raise UsageError("--kl-coef and --reference go together")
    if branch_weight is not None and alpha is not None:
        raise UsageError("--branch-weight adds the branches' loss, --alpha blends it in; give one of them")
    if epsilon is not None and advantage != "grpo":
        raise UsageError("--epsilon is added to the deviation in --advantage grpo; leave it out here")
    epsilon = 1e-6 if epsilon is None else epsilon
    if alpha is not None and not 0 <= alpha <= 1:
        raise UsageError(f"--alpha is {alpha}, expected a number from 0 to 1")
    weight = 1.0 if branch_weight is None else branch_weight
    for flag, value, least in (
        ("--epochs", epochs, 1),
        ("--mini-batch", mini_batch, 0),
        ("--micro-tokens", micro_tokens, 1),
        ("--warmup", warmup, 0),
        ("--learning-rate", learning_rate, 0),
        ("--weight-decay", weight_decay, 0),
        ("--dual-clip", dual_clip, 1),
        ("--clip-low", clip_low, 0),
        ("--clip-high", clip_high, 0),
        ("--kl-coef", kl_coef, 0),
        ("--epsilon", epsilon, 0),
        ("--branch-weight", weight, 0),
    ):
        if not least <= value < math.inf:
            raise UsageError(f"{flag} is {value}, expected a number from {least} on")
    if not math.isfinite(entropy_coef):
        raise UsageError(f"--entropy-coef is {entropy_coef}, expected a number")
    if not max_grad_norm > 0 or clip_low > 1:
        raise UsageError("expected --max-grad-norm above 0 (inf turns it off) and --clip-low at most 1")
    policy = policies.find(model)
    frozen = policies.find(reference) if reference is not None else None
    with Run("train-step", io, resumable=False, records_out=False) as run:
        loss = LossSettings(
            clip_low=clip_low,
            clip_high=clip_high,
            dual_clip=dual_clip,
            kl_coef=kl_coef,
            entropy_coef=entropy_coef,
            branch_weight=weight,
            alpha=alpha,
        )
        update = UpdateSettings(
            loss=loss,
            aggregation=aggregation,
            old_logprobs=old_logprobs,
            epochs=epochs,
            mini_batch=mini_batch,
            micro_tokens=micro_tokens,
            learning_rate=learning_rate,
            warmup=warmup,
            weight_decay=weight_decay,
            max_grad_norm=max_grad_norm,
            seed=seed,
        )
        settings = TrainSettings(advantage, epsilon, update, dtype, device, keep_optimizer)
        records = run.read(Checker(policy, off_policy).check)
        with progress("train-step", None) as advance:
            metrics = stage(records, policy, Path(io.output), settings, frozen, run.warn, advance, io.resume)
        run.figures(**metrics)
        run.print(metrics)
        run.say(_summary(metrics))


def _summary(metrics: dict[str, Any]) -> str:
    """The step in one line: the share of groups without a signal first, then what was trained on."""
    main, branch = metrics["main"], metrics["branch"]
    groups = [_groups(figures, name) for figures, name in ((main, "main"), (branch, "branch")) if figures["rollouts"]]
    trained = f"{main['rollouts_trained']} rollouts" + (
        f" and {branch['rollouts_trained']} branches" if branch["rollouts"] else ""
    )
    return (
        f"policy {metrics['policy_step']}: {'; '.join(groups)}; {counted(metrics['updates'], 'update')} "
        f"on {trained}, {metrics['tokens_trained']} tokens in {metrics['seconds']:.1f} s"
    )


def _groups(figures: dict[str, Any], name: str) -> str:
    return (
        f"{figures['zero_advantage_share']:.0%} of {figures['groups']} {name} groups without a signal "
        f"({figures['groups_all_wrong']} all wrong, {figures['groups_all_right']} all right)"
    )
