"""Advantages against closed forms and the statistics module; groups classified by exact comparison."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.training.advantages import advantages, group_signal

rewards_of_a_group = st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=12)


def test_one_success_in_four():
    assert advantages([1, 0, 0, 0]) == [0.75, -0.25, -0.25, -0.25]
    assert advantages([1, 0, 0, 0], "rloo") == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])
    assert advantages([1, 0, 0, 0], "grpo", epsilon=0) == pytest.approx([1.5, -0.5, -0.5, -0.5])


def test_epsilon_of_grpo_is_added_to_the_deviation():
    std = statistics.stdev([1, 0, 0, 0])
    assert advantages([1, 0, 0, 0], "grpo", epsilon=0.5)[0] == pytest.approx(0.75 / (std + 0.5))


@given(rewards_of_a_group)
def test_each_kind_follows_its_definition(rewards):
    mean, std = statistics.fmean(rewards), statistics.stdev(rewards)
    others = [statistics.fmean(rewards[:i] + rewards[i + 1 :]) for i in range(len(rewards))]
    assert advantages(rewards) == pytest.approx([r - mean for r in rewards], abs=1e-9)
    assert advantages(rewards, "rloo") == pytest.approx(
        [r - other for r, other in zip(rewards, others, strict=True)], abs=1e-9
    )
    assert advantages(rewards, "grpo", epsilon=1e-3) == pytest.approx(
        [(r - mean) / (std + 1e-3) for r in rewards], abs=1e-6
    )


@pytest.mark.parametrize("kind", ["dr-grpo", "grpo", "rloo"])
@pytest.mark.parametrize("rewards", [[0.1] * 7, [1.0], []])
def test_equal_rewards_have_exactly_no_advantage(kind, rewards):
    assert advantages(rewards, kind, epsilon=1e-12) == [0.0] * len(rewards)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="dr-grpo, grpo, rloo"):
        advantages([0, 1], "gae")


@pytest.mark.parametrize(
    ("rewards", "signal"),
    [
        ([0, 1, 0, 0], "mixed"),
        ([0, 0, 0, 0], "all_wrong"),
        ([-0.5, -0.5], "all_wrong"),
        ([1, 1.0, 1], "all_right"),
        ([2, 2], "all_right"),
        ([0.5, 0.5, 0.5], "constant"),
        ([0.1 + 0.2, 0.3], "mixed"),
        ([0, None, 0], "all_wrong"),
        ([1, None, 0], "mixed"),
        ([1, None, None], "unjudged"),
        ([None, None], "unjudged"),
        ([], "unjudged"),
    ],
)
def test_what_a_group_can_teach(rewards, signal):
    assert group_signal(rewards) == signal
