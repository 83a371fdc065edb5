"""What the embedded policy can and cannot do: the sets are what their names say."""

from collections import defaultdict

import pytest

from rlvr_cli.engines.engine import Sampling
from rlvr_cli.records import Record
from rlvr_cli.stages.rollout import Plan, rollout
from rlvr_cli.stages.verify import verify
from rlvr_cli.tiny.problems import generate
from rlvr_cli.training.advantages import group_signal


@pytest.fixture(scope="module")
def sampled(make_engine, tiny, tokens):
    """Rewards by (set, kind) and group: eight samples of every eighth problem."""
    engine = make_engine(512)
    rewards = defaultdict(lambda: defaultdict(list))
    for name in ("learnable", "trap", "deep", "eval"):
        problems = [Record(problem) for problem in list(generate(name))[::8]]
        found = rollout(problems, engine, Plan(tiny, 8, 200, 0, Sampling()), tokens.prompt_ids, tokens.text)
        for record in verify(found):
            rewards[name, record["kind"]][record["problem_id"]].append(record["reward"])
    return rewards


def zero_advantage_share(sampled, name: str) -> float:
    signals = [group_signal(group) for (of, _), groups in sampled.items() if of == name for group in groups.values()]
    return 1 - signals.count("mixed") / len(signals)


def pass_at_1(sampled, name: str, kind: str) -> float:
    rewards = [reward for group in sampled[name, kind].values() for reward in group]
    return sum(rewards) / len(rewards)


def test_most_groups_of_the_trap_and_of_the_deep_set_have_no_signal(sampled):
    assert zero_advantage_share(sampled, "trap") > 0.75
    assert zero_advantage_share(sampled, "deep") > 0.9


def test_most_groups_of_the_learnable_set_have_one(sampled):
    assert zero_advantage_share(sampled, "learnable") < 0.6


def test_easy_steps_hold_and_hard_ones_do_not(sampled):
    assert pass_at_1(sampled, "eval", "easy") > 0.9
    assert 0.15 < pass_at_1(sampled, "learnable", "medium") < 0.6
    assert 0.02 < pass_at_1(sampled, "learnable", "hard1") < 0.25
    assert pass_at_1(sampled, "trap", "hard4") < 0.01
    assert pass_at_1(sampled, "deep", "deep3") < 0.01


def test_the_package_stays_small(tiny):
    assert sum(path.stat().st_size for path in tiny.path.iterdir()) < 6 * 2**20
