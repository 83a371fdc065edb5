"""What a dataset is worth to a policy, and the table of it."""

import pytest

from rlvr_cli.difficulty.estimators import fit_beta, signal_posterior, signal_unbiased
from rlvr_cli.difficulty.summary import summary, table

COUNTS = {"groups": 1, "groups_mixed": 0, "groups_all_wrong": 0, "groups_all_right": 0}


def row(n, c, bucket="medium", policy="0123456789abcdef", step=0, **groups):
    described = {"policy_id": policy, "policy_step": step, "temperature": 1.0, "max_tokens": 64}
    return {"problem_id": f"{n}{c}{bucket}", "n": n, "n_correct": c, "bucket": bucket, **described, **COUNTS, **groups}


ROWS = [
    row(8, 0, "hard", groups_all_wrong=1),
    row(8, 2, groups_mixed=1),
    row(8, 6, groups_mixed=1),
    row(8, 8, "easy", groups=2, groups_all_right=1),
    row(0, 0, "unknown"),
]


def test_shares_are_of_groups_and_rates_of_problems():
    [found] = summary(ROWS)
    assert (found["groups"], found["problems"], found["problems_unjudged"], found["rollouts"]) == (6, 4, 1, 32)
    assert found["mixed"] == pytest.approx(2 / 6)
    assert found["zero_advantage_share"] == pytest.approx(4 / 6)
    assert (found["all_wrong"], found["all_right"]) == pytest.approx((1 / 6, 1 / 6))
    assert found["pass_at_1"] == 0.5
    assert found["buckets"] == {
        "hard": {"n": 1, "pass_at_1": 0.0},
        "medium": {"n": 2, "pass_at_1": 0.5},
        "easy": {"n": 1, "pass_at_1": 1.0},
    }


def test_effectiveness_is_unbiased_up_to_the_fewest_rollouts_and_posterior_beyond():
    outcomes = [(8, 0), (8, 2), (4, 4)]
    [found] = summary([row(n, c) for n, c in outcomes])
    curve = {point["k"]: point for point in found["effectiveness"]}
    assert list(curve) == [2, 4, 8, 16, 32, 64, 128, 256]
    assert [curve[k]["estimator"] for k in (4, 8)] == ["unbiased", "posterior"]
    assert curve[4]["e_k"] == pytest.approx(sum(signal_unbiased(n, c, 4) for n, c in outcomes) / 3)
    prior = fit_beta(outcomes)
    assert found["prior"] == list(prior)
    assert curve[8]["e_k"] == pytest.approx(sum(signal_posterior(n, c, 8, *prior) for n, c in outcomes) / 3)
    assert all(point["low"] <= point["e_k"] <= point["high"] for point in curve.values())
    assert curve[4]["squared_advantage"] == pytest.approx((2 * 6 / 56) / 3 * 3 / 4)


def test_each_policy_and_sampling_has_its_own_figures():
    rows = [row(8, 4), row(8, 8, step=1, policy="p1"), row(8, 0) | {"temperature": 0.5}]
    assert [part["pass_at_1"] for part in summary(rows)] == [0.5, 1.0, 0.0]


def test_the_same_rows_give_the_same_intervals():
    assert summary(ROWS) == summary(ROWS)


def test_table_at_80_columns():
    text = table(summary([*ROWS, *(row(8, 5, "easy", policy="fedcba9876543210", step=10, groups_mixed=1),) * 1000]))
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert lines[0] == "groups with zero advantage"
    assert lines[1].split("  ")[-3:] == ["all wrong", "all right", " mixed"]
    assert lines[2].split() == ["0", "01234567", "1", "64", "6", "66.7%", "16.7%", "16.7%", "33.3%"]
    assert lines[5] == "pass@1/number of problems"
    assert lines[6].split() == ["step", "policy", "hard", "medium", "easy", "all"]
    assert lines[7].split() == ["0", "01234567", "0.000/1", "0.500/2", "1.000/1", "0.500/4"]
    assert lines[8].split() == ["10", "fedcba98", "-", "-", "0.625/1000", "0.625/1000"]
    curve = lines[12].split()
    assert curve[:2] == ["0", "01234567"]
    assert curve[4] == "0.500"  # K = 8: two of four problems were mixed
    assert curve[5].startswith("~")
    assert lines[13].split()[0] == "low"
    assert lines[14].split()[0] == "high"
    assert lines[-1] == "~ extrapolated from fewer rollouts than K"


def test_table_at_its_widest_still_fits():
    names = ("hard", "medium", "easy", "unknown")
    rows = [row(1, i % 2, names[i % 4], groups_all_right=1, groups=1) for i in range(4000)]
    assert max(len(line) for line in table(summary(rows)).splitlines()) <= 80


def test_table_of_one_problem_that_nobody_could_judge():
    text = table(summary([row(0, 0, "unknown", policy=None)]))
    assert "100.0%" in text
    assert "E_K" in text
