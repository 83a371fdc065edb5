"""What the demo found, from the files of its run: `summary.json` and a page for people.

demo_summary.py RUN STEP...     write RUN/summary.json from RUN/step-STEP/... and print it
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

BUCKETS = ("easy", "medium", "hard")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    with path.open("rb") as file:
        yield from map(orjson.loads, file)


def lines_if_any(path: Path) -> Iterator[dict[str, Any]]:
    """The same of a file that a run without exploration or synthesis does not have."""
    return lines(path) if path.exists() else iter(())


def by_bucket(stats: Path) -> dict[str, dict[str, float]]:
    """pass@1 of each bucket: the mean of the problems' pass rates."""
    rates = defaultdict(list)
    for row in lines(stats):
        rates[row["bucket"]].append(row["pass_rate"])
    return {
        bucket: {"n": len(rates[bucket]), "pass_at_1": sum(rates[bucket]) / len(rates[bucket])}
        for bucket in BUCKETS
        if rates[bucket]
    }


def tokens_generated(scored: Path) -> int:
    """How many tokens were sampled for these records: a branch's inherited tokens were not."""
    return sum(len(row["completion_token_ids"]) - row.get("prefix_len", 0) for row in lines_if_any(scored))


def stream_figures(card: dict[str, Any], scored: Path) -> dict[str, Any]:
    """One stream of a step: its groups by the train-step's own count, its tokens by the records."""
    groups = card["groups"] or 1
    return {
        "groups": card["groups"],
        "zero_advantage_share": card["zero_advantage_share"],
        "all_wrong": card["groups_all_wrong"] / groups,
        "all_right": card["groups_all_right"] / groups,
        "tokens_generated": tokens_generated(scored),
        "rollouts_trained": card["rollouts_trained"],
        "reward_mean": card["reward_mean"],
        "entropy": card["entropy"],
    }


def step_figures(directory: Path) -> dict[str, Any]:
    """One step: the figures of the main stream, those of the branches under `branch`, the seconds by the stages.

    A stage that was run again counts with its last run; one that was resumed with what it did then.
    """
    card = orjson.loads((directory / "policy" / "rlvr.json").read_bytes())["metrics"]
    seconds = {
        (name, line["command"]): line["seconds"]
        for name in ("metrics.jsonl", "branch-metrics.jsonl")
        for line in lines_if_any(directory / name)
    }
    return {
        "step": int(directory.name.removeprefix("step-")),
        **stream_figures(card["main"], directory / "scored.jsonl"),
        "branch": stream_figures(card["branch"], directory / "branches-scored.jsonl"),
        "updates": card["updates"],
        "synthesized": sum(1 for _ in lines_if_any(directory / "children.jsonl")),
        "seconds": round(sum(seconds.values()), 2),
    }


def generations(run: Path, steps: list[str]) -> list[dict[str, int]]:
    """The synthesized problems of each generation: how many, how many were tried, and where their last group lay."""
    children = (row for step in steps for row in lines_if_any(run / f"step-{step}/children.jsonl"))
    born = {row["problem_id"]: row["generation"] for row in children}
    last: dict[str, str] = {}
    for step in steps:
        for row in lines(run / f"step-{step}/stats.jsonl"):
            fate = "too_hard" if not row["n_correct"] else "too_easy" if row["n_correct"] == row["n"] else "in_band"
            last[row["problem_id"]] = fate
    made = Counter(born.values())
    found = Counter((generation, last.get(name, "untried")) for name, generation in born.items())
    return [
        {
            "generation": generation,
            "problems": made[generation],
            **{fate: found[generation, fate] for fate in ("untried", "too_hard", "in_band", "too_easy")},
        }
        for generation in sorted(made)
    ]


def summarize(run: Path, steps: list[str]) -> dict[str, Any]:
    """All figures of a run."""
    return {
        "before": by_bucket(run / "before" / "stats.jsonl"),
        "after": by_bucket(run / f"step-{steps[-1]}" / "after" / "stats.jsonl"),
        "steps": [step_figures(run / f"step-{step}") for step in steps],
        "generations": generations(run, steps),
    }


def page(run: Path, last: str, summary: dict[str, Any]) -> str:
    """The summary as text, 80 columns at most."""
    text = ["", "pass@1 on held-out problems, by bucket (hard: the base policy solved none of 32)", ""]
    text.append(f"  {'bucket':8}{'problems':>10}{'before':>10}{'after':>10}{'gain':>10}")
    for bucket, before in summary["before"].items():
        after = summary["after"][bucket]["pass_at_1"]
        rate = before["pass_at_1"]
        text.append(f"  {bucket:8}{before['n']:>10}{rate:>10.3f}{after:>10.3f}{after - rate:>+10.3f}")
    text += ["", "groups without a signal, by step: main groups of a problem, branches of a pivot", ""]
    text.append(
        f"  {'step':>4}{'main':>7}{'wrong':>7}{'right':>7}{'branch':>8}{'wrong':>7}{'right':>7}"
        f"{'trained':>9}{'tokens':>9}{'seconds':>9}"
    )
    for step in summary["steps"]:
        branch = step["branch"]
        cells = [step["zero_advantage_share"], step["all_wrong"], step["all_right"]]
        cells += [branch["zero_advantage_share"], branch["all_wrong"], branch["all_right"]] if branch["groups"] else []
        shown = [f"{'-' if value is None else f'{value:.2f}':>7}" for value in cells] + [f"{'-':>7}"] * (6 - len(cells))
        text.append(
            f"  {step['step']:>4}{''.join(shown[:3])} {''.join(shown[3:])}"
            f"{step['rollouts_trained'] + branch['rollouts_trained']:>9}"
            f"{step['tokens_generated'] + branch['tokens_generated']:>9}{step['seconds']:>9.1f}"
        )
    if summary["generations"]:
        text += ["", "synthesized problems, by generation: where the last group of each lay", ""]
        text.append(f"  {'generation':>10}{'made':>7}{'untried':>9}{'too hard':>10}{'in band':>9}{'too easy':>10}")
        for row in summary["generations"]:
            text.append(
                f"  {row['generation']:>10}{row['problems']:>7}{row['untried']:>9}{row['too_hard']:>10}"
                f"{row['in_band']:>9}{row['too_easy']:>10}"
            )
    places = {
        "summary.json": "these figures",
        f"step-{last}/policy": "the trained policy",
        "step-*/scored.jsonl": "every rollout and its verdict",
        "step-*/branches-scored.jsonl": "every branch from a pivot of a failed rollout",
        "step-*/children.jsonl": "the problems synthesized after a step, with their lineage",
        "step-*/stats.jsonl": "every problem's pass rate, for the next step's select",
    }
    text += ["", *(f"  {f'{run}/{place}':40} {what}" for place, what in places.items()), ""]
    return "\n".join(text)


def main() -> None:
    """Write and show."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    run, steps = Path(sys.argv[1]), sys.argv[2:]
    summary = summarize(run, steps)
    partial = run / ".summary.json.partial"
    partial.write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    partial.replace(run / "summary.json")
    print(page(run, steps[-1], summary))


if __name__ == "__main__":
    main()
