"""Groups of samples over an engine: rollouts that share a baseline, and the tokens that they begin with."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from rlvr_cli.engines.engine import Engine, Request, Sample, Sampling
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, rollout_id

# What an earlier sampling or judgement left on a record would be wrong beside a new completion.
STALE = ("stop", "verdict", "reward", "extracted", "verifier_detail", "shaping")


@dataclass
class Group:
    """One sample a seed, after the same prompt and the same inherited beginning of a completion (none for a rollout).

    `columns` are those of its records that do not come from sampling; `max_tokens` bounds a completion as a whole, what
    was inherited included.
    """

    columns: Record
    id: str
    stream: str
    policy: Policy
    seeds: list[int]
    prompt: list[int]
    max_tokens: int
    inherited: list[int] = field(default_factory=list)
    inherited_logprobs: list[float] = field(default_factory=list)
    samples: dict[int, Sample] = field(default_factory=dict)


def sample_groups(
    groups: Iterable[Group], engine: Engine, sampling: Sampling, decode: Callable[[list[int]], str]
) -> Iterator[Record]:
    """Yield one record a sample, whole groups in their order.

    A beginning that fills the engine's context is no crash: its records have `finish_reason` `error` and no new tokens.
    """
    open_groups: deque[Group] = deque()

    def requests() -> Iterator[Request[tuple[Group, int]]]:
        for group in groups:
            open_groups.append(group)
            beginning = tuple(group.prompt + group.inherited)
            room = engine.context - len(beginning)
            budget = min(group.max_tokens - len(group.inherited), room)
            for index, seed in enumerate(group.seeds):
                if room < 1:
                    group.samples[index] = Sample([], [], "error")
                else:
                    yield Request(beginning, seed, budget, (group, index), begun=len(group.inherited))

    for request, sample in engine.sample(requests(), sampling):
        group, index = request.tag
        group.samples[index] = sample
        while open_groups and len(open_groups[0].samples) == len(open_groups[0].seeds):
            yield from _records(open_groups.popleft(), engine, sampling, decode)
    for group in open_groups:  # overlong beginnings at the end, behind the last request
        yield from _records(group, engine, sampling, decode)


def _records(group: Group, engine: Engine, sampling: Sampling, decode: Callable[[list[int]], str]) -> Iterator[Record]:
    stop = {"stop": list(sampling.stop)} if sampling.stop else {}
    for index, sample in sorted(group.samples.items()):
        ids = group.inherited + sample.token_ids
        ended = sample.finish_reason == "stop" and sample.token_ids and ids[-1] in engine.end_ids
        yield Record(
            {
                **group.columns,
                "policy_id": group.policy.id,
                "policy_step": group.policy.step,
                "model": group.policy.name,
                "group_id": group.id,
                "sample_index": index,
                "round": 0,
                "group_size": len(group.seeds),
                "rollout_id": rollout_id(group.id, index),
                "stream": group.stream,
                "prompt_token_ids": group.prompt,
                "completion_token_ids": ids,
                "logprobs": group.inherited_logprobs + sample.logprobs,
                "completion": decode(ids[:-1] if ended else ids),
                "finish_reason": sample.finish_reason,
                "tokens_exact": True,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k,
                "min_p": sampling.min_p,
                **stop,
                "max_tokens": group.max_tokens,
                "seed": group.seeds[index],
            },
            group.columns.where,
        )
