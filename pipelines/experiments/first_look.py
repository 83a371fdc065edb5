"""What the runs of first-look.mk found.

first_look.py left RUN TOKENS STEPS    1 if another step would bring the run's first STEPS nearer to that many tokens
first_look.py table RUNS ARM/SEED...   the tables, as Markdown, of the runs in RUNS/ARM/SEED
first_look.py demo SUMMARY...          the table of the demo's runs, by their summary.json
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))
from demo_summary import lines, tokens_generated

KINDS = ("easy", "medium", "hard1", "hard2", "hard3", "hard4", "deep1", "deep2", "deep3")
BUCKETS = ("easy", "medium", "hard")


def steps_left(run: Path, budget: int, steps: int) -> int:
    """1 if another step, as long as those so far on average, brings the tokens nearer to the budget, else 0."""
    done = [run / f"step-{step:03}" for step in range(steps)]
    tokens = sum(tokens_generated(step / name) for step in done for name in ("scored.jsonl", "branches-scored.jsonl"))
    return int(tokens + tokens / steps / 2 < budget)


def pass_at_1(stats: Path) -> dict[str, float]:
    """The mean pass rate of each kind and, as `bucket NAME`, of each bucket."""
    rates = defaultdict(list)
    for row in lines(stats):
        rates[row["kind"]].append(row["pass_rate"])
        rates[f"bucket {row['bucket']}"].append(row["pass_rate"])
    return {name: fmean(found) for name, found in rates.items()}


def figures(run: Path) -> dict[str, Any]:
    """One run: what it sampled, what of it taught, and what the last policy can do."""
    summary = orjson.loads((run / "summary.json").read_bytes())
    steps = summary["steps"]
    streams = [stream for step in steps for stream in (step, step["branch"])]
    tokens = sum(stream["tokens_generated"] for stream in streams)
    useful = sum(stream["rollouts_trained"] for stream in streams)
    without = sum(step["zero_advantage_share"] * step["groups"] for step in steps)
    return {
        "tokens": tokens,
        "useful": 1000 * useful / tokens,
        "zero": without / sum(step["groups"] for step in steps),
        "steps": len(steps),
        "updates": sum(step["updates"] for step in steps),
        "before": pass_at_1(run / "before" / "stats.jsonl"),
        "after": pass_at_1(run / f"step-{steps[-1]['step']:03}" / "after" / "stats.jsonl"),
    }


def cell(values: list[float], digits: int) -> str:
    """The mean, and the values themselves behind it in the order of the seeds."""
    mean = f"{fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({' '.join(f'{value:.{digits}f}' for value in values)})"


def table(runs: Path, names: list[str]) -> str:
    """Two tables: what was sampled and trained on, and pass@1 after it; a row an arm, in brackets seed by seed."""
    arms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name in names:
        arms[name.partition("/")[0]].append(figures(runs / name))

    def row(
        title: str, found: list[dict[str, Any]], columns: list[Callable[[dict[str, Any]], float]], digits: list[int]
    ) -> str:
        cells = [cell([column(run) for run in found], places) for column, places in zip(columns, digits, strict=True)]
        return f"| {title} | {' | '.join(cells)} |"

    account = ["tokens", "useful", "zero", "steps", "updates"]
    text = ["| arm | tokens | useful samples per 1,000 tokens | main groups without a signal | steps | updates |"]
    text.append("| --- " * 6 + "|")
    for arm, found in arms.items():
        text.append(row(arm, found, [lambda run, name=name: run[name] for name in account], [0, 2, 2, 0, 0]))
    every = [run for found in arms.values() for run in found]
    for title, names in (("bucket", [f"bucket {bucket}" for bucket in BUCKETS]), ("kind", list(KINDS))):
        names = [name for name in names if name in every[0]["before"]]
        text += ["", f"| pass@1 by {title} | {' | '.join(name.removeprefix('bucket ') for name in names)} |"]
        text.append("| --- " * (len(names) + 1) + "|")
        means = [fmean(run["before"][name] for run in every) for name in names]
        text.append(f"| base | {' | '.join(f'{mean:.3f}' for mean in means)} |")
        for arm, found in arms.items():
            columns = [lambda run, name=name: run["after"][name] for name in names]
            text.append(row(arm, found, columns, [3] * len(names)))
    return "\n".join(text)


def demo_table(summaries: list[dict[str, Any]]) -> str:
    """pass@1 of each bucket before and after, and the gain; in brackets run by run."""
    text = ["| bucket | before | after | gain |", "| --- | --- | --- | --- |"]
    for bucket in BUCKETS:
        before, after = ([run[when][bucket]["pass_at_1"] for run in summaries] for when in ("before", "after"))
        gain = [last - first for first, last in zip(before, after, strict=True)]
        text.append(f"| {bucket} | {cell(before, 3)} | {cell(after, 3)} | {cell(gain, 3)} |")
    return "\n".join(text)


def main() -> None:
    """Do what the first word says."""
    match sys.argv[1:]:
        case ["left", run, budget, steps]:
            print(steps_left(Path(run), int(budget), int(steps)))
        case ["table", runs, *names] if names:
            print(table(Path(runs), names))
        case ["demo", *summaries] if summaries:
            print(demo_table([orjson.loads(Path(name).read_bytes()) for name in summaries]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
