"""Sample K completions for each problem: exact token ids, exact logprobs, one derived seed a sample."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rlvr_cli.engines.engine import Engine, Sampling
from rlvr_cli.engines.groups import STALE, Group, sample_groups
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, group_id, problem_id, sample_seed

# What makes a record a pivot or a branch.
BRANCH = ("pivot_id", "parent_rollout_id", "prefix_len", "depth", "recoverability", "utility")


@dataclass(frozen=True)
class Plan:
    """What to sample: `samples` completions a problem (K) of at most `max_tokens`, seeded by the run's seed."""

    policy: Policy
    samples: int
    max_tokens: int
    seed: int
    sampling: Sampling


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
    groups = (_group(problem, plan, encode(problem)) for problem in problems)
    yield from sample_groups(groups, engine, plan.sampling, decode)


def _group(problem: Record, plan: Plan, prompt: list[int]) -> Group:
    step, name = plan.policy.step, problem_id(problem)
    group = group_id(plan.policy.id, step, plan.seed, name)
    kept = {column: value for column, value in problem.items() if column not in (*BRANCH, *STALE)}
    return Group(
        columns=Record({**kept, "problem_id": name}, problem.where),
        id=group,
        stream="main",
        policy=plan.policy,
        seeds=[sample_seed(plan.seed, step, group, index) for index in range(plan.samples)],
        prompt=prompt,
        max_tokens=plan.max_tokens,
    )
