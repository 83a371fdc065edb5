"""From scored records to the sequences of a step, and from those to mini-batches and micro-batches.

Records are of two streams: `main` rollouts, grouped by problem, and `branch` rollouts, grouped by the pivot that they
leave a failed main rollout at (Deep Dense Exploration, arXiv 2602.14169). Each group has a baseline of its own.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rlvr_cli.checks import check_exact, check_judged, check_vocabulary, claim
from rlvr_cli.errors import RecordError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, check_columns, stable_hash
from rlvr_cli.training.advantages import advantages, group_signal

STREAMS = ("main", "branch")


@dataclass(frozen=True)
class Sequence:
    """One rollout that is trained on: what was sampled after which context, by which logprobs, and what it is worth.

    `context` is the prompt and, in a branch, the inherited tokens: no loss is computed there, and nothing that the
    record says of them but their ids gets here. `completion` is what the rollout sampled itself, and `logprobs` are of
    these tokens. `max_tokens` is the budget of the whole answer, inherited tokens and all.
    """

    id: str
    context: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    advantage: float
    temperature: float
    max_tokens: int
    stream: str = "main"

    @property
    def tokens(self) -> int:
        """Context and completion together."""
        return len(self.context) + len(self.completion)


@dataclass
class Stream:
    """The sequences of one stream and the account of what was left out: groups by signal, rollouts by reason."""

    sequences: list[Sequence] = field(default_factory=list)
    groups: Counter[str] = field(default_factory=Counter)
    incomplete: int = 0
    unjudged: int = 0
    rewards: list[float] = field(default_factory=list)

    @property
    def rollouts(self) -> int:
        """How many were read."""
        return len(self.rewards) + self.unjudged

    @property
    def reward_sum(self) -> float:
        """Exactly rounded, so that the order of the records does not matter."""
        return math.fsum(self.rewards)


Step = dict[str, Stream]  # each of STREAMS, empty ones too

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


@dataclass(frozen=True)
class Checker:
    """Checks scored records before they are trained on; `places` says where each rollout was first seen."""

    policy: Policy
    off_policy: bool = False
    places: dict[str, str] = field(default_factory=dict)
    _begun: dict[str, tuple[str, str]] = field(default_factory=dict)  # group -> what its rollouts begin with, and where

    def check(self, record: Record) -> None:
        """Raise RecordError for what cannot be trained on, does not fit its group, or would count twice."""
        check_scored(self.policy, self.off_policy, record)
        claim(self.places, record, "rollout_id", record["rollout_id"], "is a file named twice?")
        inherited = record.get("prefix_len", 0)
        start = stable_hash(record["prompt_token_ids"], inherited, record["completion_token_ids"][:inherited])
        known, where = self._begun.setdefault(record["group_id"], (start, record.where))
        if known != start:
            raise RecordError(
                f"{record.where}: group_id {record['group_id']} begins with other tokens at {where}: the rollouts of a "
                "group share their prompt, branches what they inherited too; sample them again"
            )


def check_scored(policy: Policy, off_policy: bool, record: Record) -> None:
    """Whether a record can be trained on: judged, exact, from this policy, with its whole support.

    Raises RecordError naming file, line, column and remedy.
    """
    check_columns(record, REQUIRED, "train-step reads scored rollouts: rlvr rollout, then rlvr verify")
    where = record.where
    check_judged(record)
    check_exact(record)
    check_vocabulary(record, policy)
    for name in ("reward", "shaping"):
        if not abs(record.get(name, 0)) < 1e9:  # their sums and squares have to stay numbers
            raise RecordError(f"{where}: {name} is {record[name]}, expected less than 1e9; scale it down")
    tokens = len(record["completion_token_ids"])
    if record["max_tokens"] < max(1, tokens):
        raise RecordError(f"{where}: max_tokens is {record['max_tokens']} and the completion has {tokens} tokens")
    if record["temperature"] <= 0:
        raise RecordError(f"{where}: temperature is 0: greedy samples have no gradient; sample with --temperature 1")
    if record.get("top_p", 1) < 1 or record.get("top_k", 0) > 0 or record.get("min_p", 0) > 0:
        raise RecordError(f"{where}: top_p, top_k or min_p cut the support; sample without them")
    _check_stream(record)
    if record.get("policy_id") is None:
        raise RecordError(f"{where}: policy_id is missing: nothing tells which weights sampled it")
    if record["policy_id"] != policy.id and not off_policy:
        raise RecordError(
            f"{where}: sampled by policy {record['policy_id']}, but {policy.name} is {policy.id}; "
            "give the policy that sampled it as --model, or --off-policy"
        )


def _check_stream(record: Record) -> None:
    """A branch says what it inherited and from which pivot; a main rollout inherits nothing."""
    where = record.where
    if record.get("stream", "main") == "main":
        for name in ("pivot_id", "prefix_len"):
            if name in record:
                raise RecordError(f"{where}: {name} stands on a main rollout: a pivot; run rlvr resample on it first")
        return
    for name in ("pivot_id", "prefix_len"):
        if name not in record:
            raise RecordError(f"{where}: {name} is missing on a branch; sample branches with rlvr resample")
    if record["group_id"] != record["pivot_id"]:
        raise RecordError(
            f"{where}: group_id is {record['group_id']} and pivot_id {record['pivot_id']}, expected the same: "
            "the branches of a pivot are one group; sample branches with rlvr resample"
        )
    size = len(record["completion_token_ids"])
    if not 0 <= record["prefix_len"] <= size:
        raise RecordError(
            f"{where}: prefix_len is {record['prefix_len']}, expected 0 to the {size} completion_token_ids; "
            "sample branches with rlvr resample"
        )


def form_step(records: Iterable[Record], kind: str, epsilon: float) -> Step:
    """Group the records of each stream, drop what teaches nothing, and give each rollout its advantage.

    A group is classified by `reward` alone; a `shaping` column is added for the advantages only. What could not be
    judged, such as a branch for which there was no room, is in no baseline and counted as unjudged. A judged rollout
    that sampled no token, as none of our engines makes one, counts in the baseline and has no part in the loss.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.get("stream", "main"), record["group_id"]), []).append(record)
    step = {name: Stream() for name in STREAMS}
    for (name, _), group in groups.items():
        stream = step[name]
        stream.incomplete += len(group) < group[0].get("group_size", len(group))
        judged = [record for record in group if "reward" in record]
        stream.unjudged += len(group) - len(judged)
        rewards = [float(record["reward"]) for record in judged]
        stream.rewards += rewards
        signal = group_signal(rewards)
        stream.groups[signal] += 1
        if signal == "mixed":
            shaped = [reward + record.get("shaping", 0.0) for reward, record in zip(rewards, judged, strict=True)]
            formed = map(_sequence, judged, advantages(shaped, kind, epsilon))
            stream.sequences += [sequence for sequence in formed if sequence.completion]
    return step


def _sequence(record: Record, advantage: float) -> Sequence:
    stream = record.get("stream", "main")
    inherited = record["prefix_len"] if stream == "branch" else 0
    ids = record["completion_token_ids"]
    return Sequence(
        id=record["rollout_id"],
        context=(*record["prompt_token_ids"], *ids[:inherited]),
        completion=tuple(ids[inherited:]),
        logprobs=tuple(record["logprobs"][inherited:]),
        advantage=advantage,
        temperature=record["temperature"],
        max_tokens=record["max_tokens"],
        stream=stream,
    )


def mini_batches(sequences: list[Sequence], size: int, seed: int, epoch: int) -> list[list[Sequence]]:
    """An epoch's mini-batches, of nearly equal size near `size`, in an order that only ids and seed decide.

    Equal sizes, so that no update is made of a few left-over sequences. Fewer than `size` are one mini-batch. The
    sequences are dealt like cards, one stream after the other: each mini-batch gets its share of both streams.
    """
    count = max(1, round(len(sequences) / size)) if size else 1
    order = sorted(
        sequences,
        key=lambda sequence: (
            STREAMS.index(sequence.stream),
            stable_hash("mini-batch", seed, epoch, sequence.id),
        ),
    )
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
