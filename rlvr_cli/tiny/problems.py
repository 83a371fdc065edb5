"""The embedded problem sets, made by a program: `make tiny-problems` writes them beside this file.

Every set is a mix of kinds. A kind says how many steps of which difficulty: `easy` has none but `+` and `-`, which the
embedded policy holds; `medium` has one `double`, right now and then; `hardN` has N steps that it mostly gets wrong;
`deepN` has N of them behind a long beginning that it holds. The README has its measured pass rates.

    python -m rlvr_cli.tiny.problems learnable > learnable.jsonl
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

from rlvr_cli.records import derived_seed, problem_id
from rlvr_cli.tiny.chains import EASY, FAIR, HARD, Chain, Step, digits, render_prompt, solve

DIRECTORY = Path(__file__).parent / "problems"

# set -> kind -> number of problems
SETS: dict[str, dict[str, int]] = {
    "learnable": {"easy": 40, "medium": 160, "hard1": 160, "hard2": 40},
    "trap": {"easy": 40, "medium": 40, "hard2": 40, "hard3": 140, "hard4": 140},
    "deep": {"easy": 40, "deep2": 100, "deep3": 260},
    "eval": {
        "easy": 40,
        "medium": 40,
        "hard1": 40,
        "hard2": 40,
        "hard3": 30,
        "hard4": 20,
        "deep1": 10,
        "deep2": 10,
        "deep3": 10,
    },
    "deep-eval": {"deep1": 50, "deep2": 50, "deep3": 50},
}


def draw_chain(kind: str, rng: random.Random) -> Chain:
    """One chain of a kind."""
    if kind == "easy":
        ops = _easy(rng, rng.randint(3, 6))
    elif kind == "medium":
        ops = _spread(_easy(rng, rng.randint(2, 4)), [rng.choice(FAIR)], rng)
    elif kind.startswith("hard"):
        ops = _spread(_easy(rng, rng.randint(2, 4)), [rng.choice(HARD) for _ in range(int(kind[4:]))], rng)
    elif kind.startswith("deep"):
        ops = _easy(rng, rng.randint(11, 12)) + [rng.choice(HARD) for _ in range(int(kind[4:]))]
    else:
        raise ValueError(f"unknown kind {kind!r}")
    return Chain(rng.randint(0, 99), tuple(Step(op, rng.randint(1, 9) if op in EASY else 0) for op in ops))


def _easy(rng: random.Random, count: int) -> list[str]:
    return [rng.choice(EASY) for _ in range(count)]


def _spread(easy: list[str], others: list[str], rng: random.Random) -> list[str]:
    """The other operations at random places between the easy ones."""
    ops = list(easy)
    for op in others:
        ops.insert(rng.randint(0, len(ops)), op)
    return ops


def problem(chain: Chain, **columns: str) -> dict[str, str]:
    """The record of a chain; its answer is exact."""
    record = {"prompt": render_prompt(chain), "answer": digits(solve(chain)[-1]), "verifier": "chain", **columns}
    return {"problem_id": problem_id(record), **record}


def generate(name: str) -> Iterator[dict[str, str]]:
    """The problems of a set. No prompt stands twice, in a set or in two: `eval` is drawn first, the rest avoid it."""
    seen: set[str] = set()
    for other in ("eval", *(other for other in SETS if other != "eval")):
        rng = random.Random(derived_seed("tiny problems", other))
        for kind, count in SETS[other].items():
            made = 0
            while made < count:
                record = problem(draw_chain(kind, rng), source=f"tiny:{other}", kind=kind)
                if record["prompt"] in seen:
                    continue
                seen.add(record["prompt"])
                made += 1
                if other == name:
                    yield record
        if other == name:
            return


def main() -> None:
    """Write one set to standard output, or all of them into the package."""
    if len(sys.argv) > 1:
        sys.stdout.buffer.writelines(orjson.dumps(record) + b"\n" for record in generate(sys.argv[1]))
        return
    DIRECTORY.mkdir(exist_ok=True)
    for name in SETS:
        (DIRECTORY / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in generate(name)))


if __name__ == "__main__":
    main()
