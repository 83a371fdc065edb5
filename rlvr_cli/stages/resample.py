"""Sample B branches from each pivot: Deep Dense Exploration, step 5 (DEEP-GRPO, arXiv 2602.14169).

A branch goes on from the exact tokens of a failed rollout, cut at the pivot: nothing is tokenized again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rlvr_cli.checks import check_exact, check_vocabulary
from rlvr_cli.engines.engine import Engine, Sampling
from rlvr_cli.engines.groups import STALE, Group, sample_groups
from rlvr_cli.errors import RecordError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record, check_columns, pivot_id, sample_seed

REQUIRED = (
    "rollout_id",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "finish_reason",
    "max_tokens",
    "prefix_len",
)


@dataclass(frozen=True)
class Plan:
    """How to sample: `samples` branches a pivot (B), seeded by the run's seed."""

    policy: Policy
    samples: int
    seed: int
    sampling: Sampling


def resample(
    pivots: Iterable[Record], engine: Engine, plan: Plan, decode: Callable[[list[int]], str]
) -> Iterator[Record]:
    """Yield `plan.samples` branches for each pivot, whole groups in the order of the pivots.

    A branch is a rollout of stream `branch`: ids, logprobs and text are the inherited prefix and the new tokens
    together; the first `prefix_len` of them are the parent's own. It has the budget that the parent had left there,
    `max_tokens - prefix_len`, bounded by the engine's context: without room its `finish_reason` is `error` and it has
    no new tokens. `temperature` and the like are those of the new tokens.
    """
    groups = (_group(pivot, plan) for pivot in pivots)
    yield from sample_groups(groups, engine, plan.sampling, decode)


def id_under(policy: Policy, pivot: Record) -> str:
    """The id of a pivot, and of the group of its branches, under the policy that samples them."""
    return pivot_id(pivot["rollout_id"], pivot["prefix_len"], policy.id, policy.step)


def _group(pivot: Record, plan: Plan) -> Group:
    name, length = id_under(plan.policy, pivot), pivot["prefix_len"]
    kept = {column: value for column, value in pivot.items() if column not in STALE}
    return Group(
        columns=Record({**kept, "pivot_id": name, "parent_rollout_id": pivot["rollout_id"]}, pivot.where),
        id=name,
        stream="branch",
        policy=plan.policy,
        seeds=[sample_seed(plan.seed, plan.policy.step, name, index) for index in range(plan.samples)],
        prompt=pivot["prompt_token_ids"],
        max_tokens=pivot["max_tokens"],
        inherited=pivot["completion_token_ids"][:length],
        inherited_logprobs=pivot["logprobs"][:length],
    )


def check_pivot(pivot: Record, policy: Policy) -> None:
    """Whether branches can be sampled there: a main rollout with exact tokens, and a prefix that leaves room.

    Raises RecordError naming file, line, column and remedy.
    """
    check_columns(pivot, REQUIRED, "resample reads pivots: run rlvr find-pivots on scored rollouts first")
    if pivot.get("stream", "main") != "main":
        raise RecordError(f"{pivot.where}: stream is {pivot['stream']}; choose pivots in main rollouts")
    check_exact(pivot)
    check_vocabulary(pivot, policy)
    _check_prefix(pivot)


def _check_prefix(pivot: Record) -> None:
    length, tokens, budget = pivot["prefix_len"], len(pivot["completion_token_ids"]), pivot["max_tokens"]
    if not 0 <= length <= tokens:
        raise RecordError(
            f"{pivot.where}: prefix_len is {length}, expected 0 to {tokens}, the number of completion_token_ids"
        )
    if length == tokens and pivot["finish_reason"] == "stop":
        raise RecordError(
            f"{pivot.where}: prefix_len is {length}, behind the token that ended the completion; choose an earlier one"
        )
    if length >= budget:
        raise RecordError(
            f"{pivot.where}: prefix_len is {length} and max_tokens {budget}: no token is left to sample; "
            "choose an earlier one"
        )
