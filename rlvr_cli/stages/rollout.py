"""Sample K completions for each problem: exact token ids, exact logprobs, one derived seed a sample."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from rlvr_cli.engines.engine import Engine, Request, Sample, Sampling
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, group_id, problem_id, rollout_id, sample_seed

# What an earlier rollout or judgement left on a record would be wrong beside a new completion.
STALE = (
    "pivot_id",
    "parent_rollout_id",
    "prefix_len",
    "depth",
    "recoverability",
    "utility",
    "verdict",
    "reward",
    "extracted",
    "verifier_detail",
    "shaping",
)


@dataclass(frozen=True)
class Plan:
    """What to sample: `samples` completions a problem (K) of at most `max_tokens`, seeded by the run's seed."""

    policy: Policy
    samples: int
    max_tokens: int
    seed: int
    sampling: Sampling


@dataclass
class _Group:
    problem: Record
    id: str
    prompt: list[int]
    samples: dict[int, Sample] = field(default_factory=dict)


def rollout(
    problems: Iterable[Record],
    engine: Engine,
    plan: Plan,
    encode: Callable[[Record], list[int]],
    decode: Callable[[list[int]], str],
) -> Iterator[Record]:
    """Yield `plan.samples` rollouts for each problem, whole groups in the order of the problems.

    A prompt that fills the engine's context is no crash: its rollouts have `finish_reason` `error` and no tokens.
    """
    open_groups: deque[_Group] = deque()

    def requests() -> Iterator[Request[tuple[_Group, int]]]:
        for problem in problems:
            group = _open_group(problem, plan, encode(problem))
            open_groups.append(group)
            room = engine.context - len(group.prompt)
            for index in range(plan.samples):
                if room < 1:
                    group.samples[index] = Sample([], [], "error")
                    continue
                seed = sample_seed(plan.seed, plan.policy.step, group.id, index)
                yield Request(tuple(group.prompt), seed, min(plan.max_tokens, room), (group, index))

    for request, sample in engine.sample(requests(), plan.sampling):
        group, index = request.tag
        group.samples[index] = sample
        while open_groups and len(open_groups[0].samples) == plan.samples:
            yield from _records(open_groups.popleft(), plan, engine, decode)
    for group in open_groups:  # overlong prompts at the end, behind the last request
        yield from _records(group, plan, engine, decode)


def _open_group(problem: Record, plan: Plan, prompt: list[int]) -> _Group:
    return _Group(problem, group_id(plan.policy.id, plan.policy.step, plan.seed, problem_id(problem)), prompt)


def _records(group: _Group, plan: Plan, engine: Engine, decode: Callable[[list[int]], str]) -> Iterator[Record]:
    kept = {name: value for name, value in group.problem.items() if name not in STALE}
    for index, sample in sorted(group.samples.items()):
        ended = sample.finish_reason == "stop" and sample.token_ids and sample.token_ids[-1] in engine.end_ids
        yield Record(
            {
                **kept,
                "problem_id": problem_id(group.problem),
                "policy_id": plan.policy.id,
                "policy_step": plan.policy.step,
                "model": plan.policy.name,
                "group_id": group.id,
                "sample_index": index,
                "round": 0,
                "group_size": plan.samples,
                "rollout_id": rollout_id(group.id, index),
                "stream": "main",
                "prompt_token_ids": group.prompt,
                "completion_token_ids": sample.token_ids,
                "logprobs": sample.logprobs,
                "completion": decode(sample.token_ids[:-1] if ended else sample.token_ids),
                "finish_reason": sample.finish_reason,
                "tokens_exact": True,
                "temperature": plan.sampling.temperature,
                "top_p": plan.sampling.top_p,
                "top_k": plan.sampling.top_k,
                "min_p": plan.sampling.min_p,
                "max_tokens": plan.max_tokens,
                "seed": sample_seed(plan.seed, plan.policy.step, group.id, index),
            },
            group.problem.where,
        )
