"""What a dataset is worth to each policy, out of the rows of `stages/bucketize.py`, and the table that people read."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlvr_cli.difficulty.buckets import BUCKETS, UNKNOWN
from rlvr_cli.difficulty.estimators import (
    bootstrap_intervals,
    fit_beta,
    signal_posterior,
    signal_unbiased,
    squared_advantage_unbiased,
)
from rlvr_cli.records import derived_seed

GROUP_SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
DRAWS = 10_000_000  # a bootstrap draws no more problems than these: about 2 s

Row = Mapping[str, Any]


def setting(record: Row) -> tuple[Any, ...]:
    """What pass rates belong to: the policy and the sampling parameters.

    A policy without a policy_id (a server that cannot prove its weights) is told apart by model and step.
    """
    policy_id = record.get("policy_id")
    policy = (policy_id,) if policy_id is not None else (None, record.get("model"), record.get("policy_step"))
    return policy + tuple(record.get(name) for name in SAMPLING)


def summary(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The figures of each policy and sampling, in first-seen order; plain data, for `--metrics`.

    Shares (`zero_advantage_share`, `all_wrong`, `all_right`, `mixed`) are of the groups; a group with equal rewards of
    partial credit, or with fewer than two judged rollouts, counts for zero advantage alone. `pass_at_1` is a mean over
    problems. Problems without a judged rollout are in `problems_unjudged` only.
    """
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(setting(row), []).append(row)
    return [_figures(part) for part in parts.values()]


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    judged = [row for row in rows if row["n"]]
    outcomes = [(row["n"], row["n_correct"]) for row in judged]
    groups = sum(row["groups"] for row in rows)

    def share(name: str) -> float | None:
        return sum(row[name] for row in rows) / groups if groups else None

    mixed = share("groups_mixed")
    found = {row.get("bucket", UNKNOWN) for row in judged}
    prior = fit_beta(outcomes)
    described = {name: rows[0].get(name) for name in ("policy_id", "policy_step", "model", *SAMPLING)}
    return described | {
        "groups": groups,
        "zero_advantage_share": None if mixed is None else 1 - mixed,
        "all_wrong": share("groups_all_wrong"),
        "all_right": share("groups_all_right"),
        "mixed": mixed,
        "problems": len(judged),
        "problems_unjudged": len(rows) - len(judged),
        "rollouts": sum(n for n, _ in outcomes),
        "pass_at_1": _mean([c / n for n, c in outcomes]),
        "buckets": {
            name: _bucket([row for row in judged if row.get("bucket", UNKNOWN) == name])
            for name in (*BUCKETS, UNKNOWN)
            if name in found
        },
        "effectiveness": effectiveness(outcomes, prior, derived_seed("bootstrap", *setting(rows[0]))),
        "prior": list(prior),
    }


def _bucket(rows: Sequence[Row]) -> dict[str, Any]:
    return {"n": len(rows), "pass_at_1": _mean([row["n_correct"] / row["n"] for row in rows])}


def effectiveness(outcomes: Sequence[tuple[int, int]], prior: tuple[float, float], seed: int) -> list[dict[str, Any]]:
    """E_K for K = 2, 4, ..., 256: the mean over problems of the chance S_K that a group of K gives a signal.

    `outcomes` holds the (n, c) of each problem, n >= 1. One estimator for each K: `unbiased` where every problem has
    n >= K, otherwise `posterior` for all of them, which is an extrapolation: the posterior mean under Beta(*prior),
    fitted to these outcomes. `low` and `high` are a 95% bootstrap over problems, with that prior held.
    `squared_advantage` is the mean over the problems with n >= 2 of the expected squared advantage p(1-p)(1 - 1/K).
    """
    if not outcomes:
        return []
    fewest = min(n for n, _ in outcomes)
    twice = [(n, c) for n, c in outcomes if n > 1]

    def chance(n: int, c: int, k: int) -> float:
        return signal_unbiased(n, c, k) if k <= fewest else signal_posterior(n, c, k, *prior)

    curves = [tuple(chance(n, c, k) for k in GROUP_SIZES) for n, c in outcomes]
    resamples = min(1000, max(100, DRAWS // len(curves)))
    intervals = bootstrap_intervals(curves, seed, resamples)
    return [
        {
            "k": k,
            "e_k": _mean([curve[index] for curve in curves]),
            "low": low,
            "high": high,
            "estimator": "unbiased" if k <= fewest else "posterior",
            "squared_advantage": _mean([squared_advantage_unbiased(n, c, k) for n, c in twice]),
        }
        for index, (k, (low, high)) in enumerate(zip(GROUP_SIZES, intervals, strict=True))
    ]


def table(figures: Sequence[Mapping[str, Any]]) -> str:
    """The figures of `summary` as text of at most 80 columns."""
    buckets = [name for name in (*BUCKETS, UNKNOWN) if any(name in part["buckets"] for part in figures)]
    blocks = [
        _grid(
            ["step", "policy", "temp", "tokens", "groups", "zero", "all wrong", "all right", "mixed"],
            [_group_cells(part) for part in figures],
            title="groups with zero advantage",
        ),
        _grid(
            ["step", "policy", *buckets, "all"],
            [_bucket_cells(part, buckets) for part in figures],
            title="pass@1/number of problems",
        ),
        _grid(
            ["step", "policy", *(f"K={k}" for k in GROUP_SIZES)],
            [cells for part in figures for cells in _curve_cells(part)],
            title="E_K: chance that a group of K gives any signal; low, high: 95% over problems",
        ),
    ]
    if any(point["estimator"] == "posterior" for part in figures for point in part["effectiveness"]):
        blocks[-1] += "\n~ extrapolated from fewer rollouts than K"
    return "\n\n".join(blocks)


def _label(part: Mapping[str, Any]) -> list[str]:
    step = part["policy_step"]
    return ["-" if step is None else str(step), (part["policy_id"] or part["model"] or "-")[:8]]


def _group_cells(part: Mapping[str, Any]) -> list[str]:
    temperature, tokens = part["temperature"], part["max_tokens"]
    shares = (part[name] for name in ("zero_advantage_share", "all_wrong", "all_right", "mixed"))
    return [
        *_label(part),
        "-" if temperature is None else f"{temperature:g}",
        "-" if tokens is None else str(tokens),
        str(part["groups"]),
        *(_shown(share, "{:.1%}") for share in shares),
    ]


def _bucket_cells(part: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    found = [part["buckets"].get(name) for name in names]
    cells = [f"{bucket['pass_at_1']:.3f}/{bucket['n']}" if bucket else "-" for bucket in found]
    return [*_label(part), *cells, f"{_shown(part['pass_at_1'], '{:.3f}')}/{part['problems']}"]


def _curve_cells(part: Mapping[str, Any]) -> list[list[str]]:
    curve = part["effectiveness"]
    marks = ["~" if point["estimator"] == "posterior" else "" for point in curve]
    return [
        [*_label(part), *(f"{mark}{point['e_k']:.3f}" for mark, point in zip(marks, curve, strict=True))],
        *(["", name, *(f"{point[name]:.3f}" for point in curve)] for name in ("low", "high")),
    ]


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> str:
    """A title over right-aligned columns, two blanks apart."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(header))]
    aligned = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=False)).rstrip() for line in lines
    ]
    return "\n".join([title, *aligned])


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
