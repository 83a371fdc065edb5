"""What the demo found, from the files of its run: `summary.json` and a page for people.

demo_summary.py RUN STEP...     write RUN/summary.json from RUN/step-STEP/... and print it
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

BUCKETS = ("easy", "medium", "hard")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    with path.open("rb") as file:
        yield from map(orjson.loads, file)


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


def step_figures(directory: Path) -> dict[str, Any]:
    """One step: its groups by the train-step's own count, its tokens by the records, its seconds by the stages.

    A stage that was run again counts with its last run; one that was resumed with what it did then.
    """
    card = orjson.loads((directory / "policy" / "rlvr.json").read_bytes())["metrics"]
    seconds = {line["command"]: line["seconds"] for line in lines(directory / "metrics.jsonl")}
    return {
        "step": int(directory.name.removeprefix("step-")),
        "zero_advantage_share": card["zero_advantage_share"],
        "all_wrong": card["groups_all_wrong"] / card["groups"],
        "all_right": card["groups_all_right"] / card["groups"],
        "tokens_generated": sum(len(row["completion_token_ids"]) for row in lines(directory / "scored.jsonl")),
        "seconds": round(sum(seconds.values()), 2),
        "updates": card["updates"],
        "reward_mean": card["reward_mean"],
        "entropy": card["entropy"],
    }


def summarize(run: Path, steps: list[str]) -> dict[str, Any]:
    """All figures of a run."""
    return {
        "before": by_bucket(run / "before" / "stats.jsonl"),
        "after": by_bucket(run / f"step-{steps[-1]}" / "after" / "stats.jsonl"),
        "steps": [step_figures(run / f"step-{step}") for step in steps],
    }


def page(run: Path, last: str, summary: dict[str, Any]) -> str:
    """The summary as text, 80 columns at most."""
    text = ["", "pass@1 on held-out problems, by bucket (hard: the base policy solved none of 32)", ""]
    text.append(f"  {'bucket':8}{'problems':>10}{'before':>10}{'after':>10}{'gain':>10}")
    for bucket, before in summary["before"].items():
        after = summary["after"][bucket]["pass_at_1"]
        rate = before["pass_at_1"]
        text.append(f"  {bucket:8}{before['n']:>10}{rate:>10.3f}{after:>10.3f}{after - rate:>+10.3f}")
    text += ["", "groups without a signal and mean reward, by step (each on the problems of its batch)", ""]
    text.append(f"  {'step':>4}{'share':>8}{'all wrong':>11}{'all right':>11}{'reward':>8}{'tokens':>9}{'seconds':>9}")
    for step in summary["steps"]:
        text.append(
            f"  {step['step']:>4}{step['zero_advantage_share']:>8.2f}{step['all_wrong']:>11.2f}"
            f"{step['all_right']:>11.2f}{step['reward_mean']:>8.2f}{step['tokens_generated']:>9}{step['seconds']:>9.1f}"
        )
    places = {
        "summary.json": "these figures",
        f"step-{last}/policy": "the trained policy",
        "step-*/scored.jsonl": "every rollout and its verdict",
        "step-*/stats.jsonl": "every problem's pass rate, for the next step's select",
    }
    text += ["", *(f"  {f'{run}/{place}':36} {what}" for place, what in places.items()), ""]
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
