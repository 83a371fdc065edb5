"""One policy-gradient update: scored main and branch rollouts and their policy in, the next policy out."""

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from rlvr_cli.errors import UserError
from rlvr_cli.policy import Policy, read_card
from rlvr_cli.records import Record, stable_hash
from rlvr_cli.training.batches import Step, Stream, form_step
from rlvr_cli.training.checkpoint import check_place, drop_optimizer, make_optimizer, new_directory, write_policy
from rlvr_cli.training.settings import TrainSettings

# Beyond these the sampler and the trainer disagree by more than the rounding of bfloat16.
GAP_MEAN = 0.02
GAP_LARGEST = 1.0


def train_step(
    records: Iterable[Record],
    policy: Policy,
    output: Path,
    settings: TrainSettings,
    reference: Policy | None = None,
    warn: Callable[[str], None] = lambda message: None,
    advance: Callable[[int], None] = lambda updates: None,
    resume: bool = False,
) -> dict[str, Any]:
    """Write the next policy to `output`, whole or not at all, and return the step's metrics.

    The metrics of each stream are under `main` and `branch`, with the same names, there with or without records.
    A step without one mixed group has no gradient: the next policy then has the same weights, so that a loop goes on.
    `resume` leaves an output that the same policy, records and settings have made: making it again would give another
    one, since the optimizer's state has gone on with it.
    """
    began = time.monotonic()
    check_place(output, policy)
    step = form_step(records, settings.advantage, settings.epsilon)
    sequences = [sequence for stream in step.values() for sequence in stream.sequences]
    if not any(stream.rollouts for stream in step.values()):
        raise UserError("no records: nothing to train on; look at the stage before")
    origin = {
        "parent_policy_id": policy.id,
        "records_digest": _records_digest(step),
        "reference_policy_id": reference and reference.id,
        "settings": asdict(settings),
    }
    if resume and (made := _made_already(output, origin)):
        warn(f"{output} was made from the same policy, records and settings already: left as it is")
        return made
    with new_directory(output, policy) as directory:
        # torch and transformers take seconds to import: not before the records are known to be good
        from rlvr_cli.engines.models import load_model
        from rlvr_cli.training.loss import stream_weights
        from rlvr_cli.training.update import update

        model = load_model(policy, settings.dtype, settings.device)
        optimizer, updates_before, continued = make_optimizer(model, policy, settings.update.weight_decay)
        if policy.step > 0 and not continued:
            warn(f"{policy.name} has no optimizer state (it went on with a later step): AdamW starts afresh")
        for name, stream in step.items():
            if stream.incomplete:
                warn(f"{name}: {stream.incomplete} groups are smaller than their group_size; is the input whole?")
            if stream.unjudged:
                warn(
                    f"{name}: {stream.unjudged} rollouts could not be judged and are in no baseline; "
                    "see their verifier_detail"
                )
        weights = stream_weights(settings.update.loss)
        if not sequences:
            warn("no group has a signal: the weights stay as they are")
        elif not any(weights[sequence.stream] for sequence in sequences):
            warn("no stream with a weight (--alpha, --branch-weight) has a signal: the policy stays as it is")
        frozen = load_model(reference, settings.dtype, settings.device) if reference is not None else None
        totals = update(model, optimizer, sequences, settings.update, updates_before, frozen, advance)
        streams = {
            name: {**_group_figures(stream, weights[name]), **totals.streams[name].figures()}
            for name, stream in step.items()
        }
        for name, figures in streams.items():
            gap, largest = figures["logprob_gap"], figures["logprob_gap_max"]
            if gap is not None and (gap > GAP_MEAN or largest > GAP_LARGEST):
                warn(
                    f"{name}: the records' logprobs are {gap:.3f} from this policy's on average, "
                    f"{largest:.2f} at most: was it sampled in lower precision, or by another policy?"
                )
        metrics = {
            "policy_step": policy.step + 1,
            **totals.figures(),
            "learning_rate": optimizer.param_groups[0]["lr"],
            "updates_before": updates_before,
            **streams,
        }
        metrics["seconds"] = time.monotonic() - began
        card = {**origin, "metrics": metrics}
        metrics["policy_id"] = write_policy(directory, model, optimizer, updates_before + totals.updates, policy, card)
    if not settings.keep_optimizer:
        try:
            drop_optimizer(policy)
        except OSError as error:  # the new policy is whole, and that is what counts
            warn(f"{policy.name} keeps its optimizer state, it cannot be removed: {error.strerror}")
    return metrics


def _made_already(output: Path, origin: dict[str, Any]) -> dict[str, Any] | None:
    """The metrics of the policy in `output` if it was made from what `origin` says, else None."""
    card = read_card(output)
    if all(card.get(name) == value for name, value in orjson.loads(orjson.dumps(origin)).items()):
        return {**card["metrics"], "policy_id": card["policy_id"]}
    return None


def _group_figures(stream: Stream, weight: float = 1.0) -> dict[str, Any]:
    """How many groups had a signal, and what became of the others. The share without one comes first.

    A stream of weight 0 is not trained on.
    """
    groups, judged = stream.groups.total(), len(stream.rewards)
    return {
        "zero_advantage_share": 1 - stream.groups["mixed"] / groups if groups else None,
        "groups": groups,
        "groups_mixed": stream.groups["mixed"],
        "groups_all_wrong": stream.groups["all_wrong"],
        "groups_all_right": stream.groups["all_right"],
        "groups_constant": stream.groups["constant"],
        "groups_unjudged": stream.groups["unjudged"],
        "groups_incomplete": stream.incomplete,
        "rollouts": stream.rollouts,
        "rollouts_unjudged": stream.unjudged,
        "rollouts_trained": len(stream.sequences) if weight else 0,
        "reward_mean": stream.reward_sum / judged if judged else None,
    }


def _records_digest(step: Step) -> str:
    """What the update and its metrics were made of, whatever the order of the records.

    Ids alone would not do: branches sampled again with another seed have the same ones.
    """
    trained = sorted(stable_hash(vars(sequence)) for stream in step.values() for sequence in stream.sequences)
    return stable_hash(trained, [_group_figures(stream) for stream in step.values()])
