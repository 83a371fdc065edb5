"""The plain version of a dual-stream step, from records alone, and records made up for it."""

import math
import random

import torch

from rlvr_cli.records import Record

MAX_TOKENS = 30


def made_up_records(seed: int = 0) -> list[Record]:
    """Main groups of 4 and branch groups of 3, some without a signal; random ids and logprobs that fit nothing."""
    rng = random.Random(seed)

    def ids(count: int) -> list[int]:
        return [rng.randrange(4, 40) for _ in range(count)]

    records = []
    for problem, rewards in enumerate(([0, 1, 0, 0], [1, 0, 0.5, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0])):
        prompt, temperature = ids(rng.randint(1, 9)), rng.choice([1.0, 0.7])
        for index, reward in enumerate(rewards):
            completion = ids(rng.randint(1, 14))
            records.append(
                Record().extended(
                    group_id=f"m{problem}",
                    rollout_id=f"m{problem}-{index}",
                    stream="main",
                    prompt_token_ids=prompt,
                    completion_token_ids=completion,
                    logprobs=[rng.uniform(-8, -2) for _ in completion],
                    temperature=temperature,
                    max_tokens=MAX_TOKENS,
                    verdict="correct" if reward else "wrong",
                    reward=float(reward),
                    shaping=rng.uniform(-0.2, 0.2),
                )
            )
    failed = [record for record in records if record["reward"] == 0]
    for pivot, rewards in enumerate(([0, 0, 1], [1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [0, 1, 0])):
        parent = failed[pivot]
        inherited = rng.randint(0, len(parent["completion_token_ids"]) - 1) if pivot else 0  # the first is at the root
        for index, reward in enumerate(rewards):
            room = (pivot, index) != (4, 2)  # one had none for a token: rlvr verify does not judge it
            new = ids(rng.randint(1, 9)) if room else []
            judged = {"verdict": "correct" if reward else "wrong", "reward": float(reward)}
            bare = {column: value for column, value in parent.items() if column not in judged}
            records.append(
                Record(bare).extended(
                    group_id=f"p{pivot}",
                    pivot_id=f"p{pivot}",
                    parent_rollout_id=parent["rollout_id"],
                    prefix_len=inherited,
                    rollout_id=f"p{pivot}-{index}",
                    stream="branch",
                    completion_token_ids=parent["completion_token_ids"][:inherited] + new,
                    logprobs=parent["logprobs"][:inherited] + [rng.uniform(-8, -2) for _ in new],
                    shaping=rng.uniform(-0.2, 0.2),
                    **(judged if room else {"verdict": "error"}),
                )
            )
    rng.shuffle(records)
    return records


def only(records: list[Record], stream: str) -> list[Record]:
    return [record for record in records if record["stream"] == stream]


def plain_tokens(model, records, s, reference=None, trainer=None):
    """Every trained token of one stream: record, loss, pg_loss, ratio, distance of logprobs, entropy, k3, if clipped.

    With a `trainer`, the model that gives logπ_old, the loss is weighted by how much likelier than to the sampler the
    token was to it.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        if "reward" not in record:
            continue
        groups.setdefault(record.get("pivot_id", record["group_id"]), []).append(record)
    for group in groups.values():
        if len({record["reward"] for record in group}) == 1:
            continue
        shaped = [record["reward"] + record.get("shaping", 0) for record in group]
        for record, worth in zip(group, shaped, strict=True):
            advantage = worth - sum(shaped) / len(shaped)
            prompt, completion = record["prompt_token_ids"], record["completion_token_ids"]
            mask = [index >= record.get("prefix_len", 0) for index in range(len(completion))]
            ids = torch.tensor([prompt + completion])
            scores = torch.log_softmax(model(input_ids=ids, use_cache=False).logits[0] / record["temperature"], -1)
            if reference is not None:
                with torch.no_grad():
                    others = torch.log_softmax(reference(input_ids=ids).logits[0] / record["temperature"], -1)
            if trainer is not None:
                with torch.no_grad():
                    before = torch.log_softmax(trainer(input_ids=ids).logits[0] / record["temperature"], -1)
            for index, (token, sampler) in enumerate(zip(completion, record["logprobs"], strict=True)):
                if not mask[index]:
                    continue
                distribution = scores[len(prompt) + index - 1]
                old = sampler if trainer is None else before[len(prompt) + index - 1][token].item()
                ratio = torch.exp(distribution[token] - old)
                clipped = ratio.clamp(1 - s.clip_low, 1 + s.clip_high) * advantage
                pg_loss = -torch.min(ratio * advantage, clipped)
                if advantage < 0:
                    pg_loss = torch.min(pg_loss, torch.tensor(-s.dual_clip * advantage, dtype=torch.float64))
                if trainer is not None:
                    pg_loss = pg_loss * min(math.exp(old - sampler), 2)
                entropy = -(distribution.exp() * distribution).sum()
                loss, k3 = pg_loss - s.entropy_coef * entropy, torch.zeros(())
                if reference is not None:
                    delta = others[len(prompt) + index - 1][token] - distribution[token]
                    k3 = torch.exp(delta) - delta - 1
                    loss = loss + s.kl_coef * k3
                gap = abs(distribution[token] - sampler)
                yield record, loss, pg_loss, ratio, gap, entropy, k3, clipped < ratio * advantage


def plain_stream_loss(model, records, aggregation, s, reference=None, trainer=None):
    """L_main or L_branch; an empty stream has loss 0."""
    found = [(record["rollout_id"], loss) for record, loss, *_ in plain_tokens(model, records, s, reference, trainer)]
    names = [name for name, _ in found]
    total = torch.zeros((), dtype=torch.float64)
    for name, loss in found:
        match aggregation:
            case "token-mean":
                total = total + loss / len(found)
            case "sequence-mean":
                total = total + loss / names.count(name) / len(set(names))
            case "constant":
                total = total + loss / (len(set(names)) * MAX_TOKENS)
    return total
