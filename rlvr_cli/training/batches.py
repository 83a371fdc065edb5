"""From scored records to the sequences of a step, and from those to mini-batches and micro-batches."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rlvr_cli.errors import RecordError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, check_columns, stable_hash
from rlvr_cli.training.advantages import advantages, group_signal


@dataclass(frozen=True)
class Sequence:
    """One rollout that is trained on: what was sampled, by which logprobs, and what it is worth."""

    id: str
    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    advantage: float
    temperature: float
    max_tokens: int

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return len(self.prompt) + len(self.completion)


@dataclass(frozen=True)
class Step:
    """The sequences of a step and the account of what was left out: groups by signal, rollouts by reason."""

    sequences: list[Sequence]
    groups: Counter[str]
    incomplete: int
    unjudged: int
    rollouts: int
    reward_sum: float


REQUIRED = (
    "group_id",
    "rollout_id",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "finish_reason",
    "temperature",
    "max_tokens",
)


def check_scored(policy: Policy, off_policy: bool, record: Record) -> None:
    """Whether a record can be trained on: judged, exact, from this policy, with its whole support.

    Raises RecordError naming file, line, column and remedy.
    """
    check_columns(record, REQUIRED, "train-step reads scored rollouts: rlvr rollout, then rlvr verify")
    where = record.where
    if "verdict" not in record:
        raise RecordError(f"{where}: verdict is missing; run rlvr verify on it first")
    if "reward" not in record and record["verdict"] != "error":
        raise RecordError(f"{where}: reward is missing; run rlvr verify on it first")
    if record.get("tokens_exact") is False:
        raise RecordError(f"{where}: tokens_exact is false; sample with an engine that returns token ids")
    if record.get("stream", "main") != "main":
        raise RecordError(f"{where}: stream is {record['stream']}; train-step takes main rollouts")
    completion, logprobs = record["completion_token_ids"], record["logprobs"]
    if len(completion) != len(logprobs):
        raise RecordError(f"{where}: {len(completion)} completion_token_ids and {len(logprobs)} logprobs; sample again")
    if not record["prompt_token_ids"]:
        raise RecordError(f"{where}: prompt_token_ids is empty: nothing to predict the first token from")
    largest = max(max(record["prompt_token_ids"]), max(completion, default=0))
    if policy.vocabulary is not None and largest >= policy.vocabulary:
        size = f"{policy.name} ({policy.vocabulary})"
        raise RecordError(f"{where}: token id {largest} is beyond the vocabulary of {size}; sampled by another model?")
    if record["max_tokens"] < max(1, len(completion)):
        raise RecordError(
            f"{where}: max_tokens is {record['max_tokens']} and the completion has {len(completion)} tokens"
        )
    if record["temperature"] <= 0:
        raise RecordError(f"{where}: temperature is 0: greedy samples have no gradient; sample with --temperature 1")
    if record.get("top_p", 1) < 1 or record.get("top_k", 0) > 0 or record.get("min_p", 0) > 0:
        raise RecordError(f"{where}: top_p, top_k or min_p cut the support; sample without them")
    if record.get("policy_id") is None:
        raise RecordError(f"{where}: policy_id is missing: nothing tells which weights sampled it")
    if record["policy_id"] != policy.id and not off_policy:
        raise RecordError(
            f"{where}: sampled by policy {record['policy_id']}, but {policy.name} is {policy.id}; "
            "give the policy that sampled it as --model, or --off-policy"
        )


def form_step(records: Iterable[Record], kind: str, epsilon: float) -> Step:
    """Group the records, drop what teaches nothing, and give each rollout its advantage.

    A group is classified by `reward` alone; a `shaping` column is added for the advantages only.
    """
    groups: dict[str, list[Record]] = {}
    places: dict[str, str] = {}
    for record in records:
        name = record["rollout_id"]
        if name in places:
            raise RecordError(
                f"{record.where}: rollout_id {name} stands at {places[name]} already; is a file named twice?"
            )
        places[name] = record.where
        groups.setdefault(record["group_id"], []).append(record)
    sequences: list[Sequence] = []
    signals: Counter[str] = Counter()
    incomplete = unjudged = 0
    reward_sum = 0.0
    for group in groups.values():
        incomplete += len(group) < group[0].get("group_size", len(group))
        judged = [record for record in group if "reward" in record]
        unjudged += len(group) - len(judged)
        rewards = [float(record["reward"]) for record in judged]
        reward_sum += sum(rewards)
        signal = group_signal(rewards)
        signals[signal] += 1
        if signal == "mixed":
            shaped = [reward + record.get("shaping", 0.0) for reward, record in zip(rewards, judged, strict=True)]
            worth = advantages(shaped, kind, epsilon)
            sequences += [
                _sequence(record, advantage)
                for record, advantage in zip(judged, worth, strict=True)
                if record["completion_token_ids"]
            ]
    return Step(sequences, signals, incomplete, unjudged, len(places), reward_sum)


def _sequence(record: Record, advantage: float) -> Sequence:
    return Sequence(
        id=record["rollout_id"],
        prompt=tuple(record["prompt_token_ids"]),
        completion=tuple(record["completion_token_ids"]),
        logprobs=tuple(record["logprobs"]),
        advantage=advantage,
        temperature=record["temperature"],
        max_tokens=record["max_tokens"],
    )


def mini_batches(sequences: list[Sequence], size: int, seed: int, epoch: int) -> list[list[Sequence]]:
    """An epoch's mini-batches, of nearly equal size near `size`, in an order that only ids and seed decide.

    Equal sizes, so that no update is made of a few left-over sequences. Fewer than `size` are one mini-batch.
    """
    count = max(1, round(len(sequences) / size)) if size else 1
    order = sorted(sequences, key=lambda sequence: stable_hash("mini-batch", seed, epoch, sequence.id))
    return [batch for part in range(count) if (batch := order[part::count])]


def micro_batches(sequences: list[Sequence], budget: int) -> Iterator[list[Sequence]]:
    """Cut a mini-batch into parts of at most `budget` tokens with padding (one sequence at least), longest first."""
    part: list[Sequence] = []
    for sequence in sorted(sequences, key=lambda sequence: (-sequence.tokens, sequence.id)):
        if part and part[0].tokens * (len(part) + 1) > budget:
            yield part
            part = []
        part.append(sequence)
    if part:
        yield part
