"""`rlvr verify` against Math-Verify called in a plain loop, side by side in one run, the same verdicts checked.

    python benchmarks/verify.py            two minutes on two cores
    python benchmarks/verify.py --size 0.2 a fifth of the records

Every figure is a ratio of two things measured here, alternating, the best of several rounds each:
- judging: the plain loop (parse the answer, parse the completion, verify) and ours, on one core and on all of them;
- the whole command on records with token ids, and reading and writing the same file alone (`rlvr convert`);
- the rate of the other records while one answer hangs, and the rate without it.
Answers are generated: integers as in GSM8K; integers, fractions, radicals, intervals and matrices as in MATH, right and
wrong, in a box at the end of a few sentences with calculations.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import orjson

from rlvr_cli.records import Record
from rlvr_cli.stages.verify import verify
from rlvr_cli.verifiers import load_quick
from rlvr_cli.verifiers.pool import Settings, cores

ROUNDS = 2
TARGETS = {"gsm8k": 100.0, "command": 0.7, "math": 5.0, "hung": 0.7}


def number(draw: random.Random) -> tuple[str, str]:
    """An answer, and the same as a model writes it."""
    value = draw.choice([draw.randint(0, 20), draw.randint(21, 999), draw.randint(1000, 99_999)])
    return str(value), f"{value:,}" if draw.random() < 0.3 else str(value)


def fraction(draw: random.Random) -> tuple[str, str]:
    """`\\frac{3}{7}`, in three ways to write it."""
    a, b = draw.randint(1, 40), draw.choice([3, 7, 9, 11, 13])
    a += a % b == 0
    right = draw.choice([rf"\frac{{{a}}}{{{b}}}", rf"\dfrac{{{a}}}{{{b}}}", f"{a}/{b}"])
    return rf"\frac{{{a}}}{{{b}}}", right


def radical(draw: random.Random) -> tuple[str, str]:
    """`3\\sqrt{5}`, or the root of the square."""
    a, b = draw.randint(2, 12), draw.choice([2, 3, 5, 6, 7])
    right = draw.choice([rf"{a}\sqrt{{{b}}}", rf"{a} \sqrt{{{b}}}", rf"\sqrt{{{a * a * b}}}"])
    return rf"{a}\sqrt{{{b}}}", right


def interval(draw: random.Random) -> tuple[str, str]:
    """`[-2, 5)`."""
    a = draw.randint(-9, 9)
    b, left, right = a + draw.randint(1, 9), draw.choice("[("), draw.choice(")]")
    return f"{left}{a}, {b}{right}", rf"\left{left}{a},{b}\right{right}"


def matrix(draw: random.Random) -> tuple[str, str]:
    """Two by two."""
    a, b, c, d = (draw.randint(-9, 9) for _ in range(4))

    def written(gap: str) -> str:
        return rf"\begin{{pmatrix}}{gap}{a} & {b} \\{gap}{c} & {d}{gap}\end{{pmatrix}}"

    return written(" "), written("")


GSM8K = (number,)
MATH = (number, number, number, fraction, fraction, radical, interval, matrix)


def derivation(draw: random.Random) -> str:
    """Four lines or so, as models answer GSM8K: sentences with a calculation in each."""
    lines = []
    for _ in range(draw.randint(3, 6)):
        a, b = draw.randint(2, 60), draw.randint(2, 40)
        sign, value = draw.choice([("+", a + b), ("*", a * b), ("-", a - b)])
        who, what = draw.choice(["Janet", "He", "The farmer"]), draw.choice(["eggs", "dollars", "hours", "miles"])
        dollar = "$" if what == "dollars" else ""
        lines.append(f"{who} has {a} {sign} {b} = {dollar}{value} {what} left after the first {b} days of the week.")
    return "\n".join(lines)


def rollouts(kinds: tuple[Callable[[random.Random], tuple[str, str]], ...], count: int) -> list[Record]:
    """Records to judge, eight for each problem; half are right, the others answer another problem of the kind."""
    draw = random.Random(7)
    made = []
    while len(made) < count:
        kind = draw.choice(kinds)
        answer, right = kind(draw)
        for _ in range(8):
            said = right if draw.random() < 0.5 else kind(draw)[1]
            completion = rf"{derivation(draw)}\nThe answer is $\boxed{{{said}}}$."
            columns = {"problem_id": f"p{len(made) // 8}", "prompt": "What is it?", "answer": answer}
            made.append(Record({**columns, "verifier": "math", "completion": completion, "finish_reason": "stop"}))
    return made[:count]


def with_tokens(record: Record, draw: random.Random) -> Record:
    """The record as a rollout has it: five hundred token ids and logprobs, and all the other columns."""
    count = draw.randint(300, 700)
    ids = [draw.randrange(150_000) for _ in range(count)]
    logprobs = [round(-draw.expovariate(2), 6) for _ in range(count)]
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 1024, "seed": 1}
    ours = {
        "policy_id": "8c1f0a5be2d94b7a6c35",
        "policy_step": 3,
        "model": "m",
        "group_id": record["problem_id"],
        "group_size": 8,
    }
    tokens = {"prompt_token_ids": ids[:80], "completion_token_ids": ids, "logprobs": logprobs, "tokens_exact": True}
    identity = {"rollout_id": f"{draw.getrandbits(80):020x}", "sample_index": 0, "stream": "main"}
    return Record({**record, **ours, **identity, **tokens, **sampling})


def plain(record: Record) -> bool:
    """Math-Verify as it is called in a loop."""
    import math_verify

    return bool(math_verify.verify(math_verify.parse(f"${record['answer']}$"), math_verify.parse(record["completion"])))


def at_once(record: Record) -> bool:
    """What the fast path decides; it has to decide all of them."""
    judgement = _QUICK(record)
    assert judgement is not None, f"not decided at once: {record}"
    return judgement.verdict == "correct"


_QUICK = load_quick("math") or (lambda record: None)


def share(
    judge: Callable[[Record], bool], records: list[Record], clock: Callable[[], float]
) -> tuple[float, list[bool]]:
    """One process's part: seconds of the loop alone, and what was found."""
    judge(records[0])  # imports
    begun = clock()
    found = [judge(record) for record in records]
    return clock() - begun, found


def spread(
    judge: Callable[[Record], bool], clock: Callable[[], float], records: list[Record], count: int, rounds: int
) -> tuple[float, list[bool]]:
    """Records a second in so many processes at once, of the best round, and what was found."""
    shares = [records[place::count] for place in range(count)]
    best, found = float("inf"), [[False]]
    with ProcessPoolExecutor(count) as executor:
        for _ in range(rounds):
            ended = list(executor.map(share, [judge] * count, shares, [clock] * count))
            best = min(best, max(seconds for seconds, _ in ended))
            found = [part for _, part in ended]
    return len(records) / best, [found[place % count][place // count] for place in range(len(records))]


def staged(records: list[Record], count: int, rounds: int) -> tuple[float, list[bool]]:
    """The same of the whole stage, the start of its processes included."""
    best, found = float("inf"), [False]
    for _ in range(rounds):
        begun = time.perf_counter()
        found = [scored["verdict"] == "correct" for scored in verify(records, "math", Settings(workers=count))]
        best = min(best, time.perf_counter() - begun)
    return len(records) / best, found


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Only so many cores, for this process and those that it starts."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_of_them)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def compare(label: str, target: str, records: list[Record], few: int) -> None:
    """Both ways on one core and on all, and whether their verdicts are the same; the plain loop gets `few` records.

    The fast path and the plain loop are measured in processor time, so that a busy machine matters less.
    """
    for count in sorted({1, cores()}):
        clock = time.process_time if target == "gsm8k" else time.perf_counter
        ours = partial(spread, at_once, clock) if target == "gsm8k" else staged
        with on_cores(count):
            our_rate, found = ours(records, count, ROUNDS)
            plain_rate, theirs = spread(plain, clock, records[:few], count, ROUNDS)
        differ = [record for record, one, other in zip(records, theirs, found, strict=False) if one != other]
        told(f"{label}, {count} core(s)", our_rate, plain_rate, "the plain loop", TARGETS[target])
        print(f"    verdicts that differ: {len(differ)} of {len(theirs)}")
        for record in differ[:3]:
            print(f"        {record['answer']}  against  ...{record['completion'][-60:]}")


def told(label: str, ours: float, theirs: float, what: str, target: float) -> None:
    """One line: both rates, their ratio, the target."""
    mark = "" if ours / theirs >= target else "   BELOW"
    print(f"{label}: {ours:,.0f}/s, {what} {theirs:,.0f}/s: ratio {ours / theirs:.2f} (target {target:g}){mark}")


def whole_command(count: int) -> None:
    """`rlvr verify` on a file, and `rlvr convert`, which reads, checks and writes it."""
    draw = random.Random(8)
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "rollouts.jsonl"
        with source.open("wb") as file:
            file.writelines(orjson.dumps(with_tokens(record, draw)) + b"\n" for record in rollouts(GSM8K, count))

        def call(command: str) -> float:
            begun = time.perf_counter()
            words = [sys.executable, "-m", "rlvr_cli", command, str(source), "-o", f"{directory}/out.jsonl"]
            subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
            return time.perf_counter() - begun

        seconds: dict[str, float] = {}
        for _ in range(ROUNDS):
            for command in ("convert", "verify"):
                seconds[command] = min(seconds.get(command, float("inf")), call(command))
        size = source.stat().st_size / 2**20
    print(f"whole command, {count} records with token ids, {size:.0f} MiB")
    told("    verify", count / seconds["verify"], count / seconds["convert"], "convert", TARGETS["command"])


HUNG = """
def judge(record):
    if record["completion"] == "hang":
        while True: pass
    return sum(number * number for number in range(20_000)) > 0
"""


def one_hung(count: int, deadline: float) -> None:
    """The rate of a judge of a millisecond, and with one answer among a thousand or more that hangs."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "hung.py").write_text(HUNG)
        sys.path.insert(0, directory)
        rates = {0: 0.0, 1: 0.0}
        for hung in [0, 1] * ROUNDS:
            records = [Record({"completion": "hang" if hung and place == 50 else "x"}) for place in range(count)]
            begun = time.perf_counter()
            found = [scored["verdict"] for scored in verify(records, "hung:judge", Settings(deadline=deadline))]
            rates[hung] = max(rates[hung], count / (time.perf_counter() - begun))
            assert (found.count("timeout"), found.count("correct")) == (hung, count - hung)
        sys.path.remove(directory)
    told(f"one answer of {count} hangs for {deadline:g} s", rates[1], rates[0], "none", TARGETS["hung"])


def main() -> None:
    """Print all ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, help="how many records, relatively")
    size = parser.parse_args().size
    compare("judging integers as in GSM8K", "gsm8k", rollouts(GSM8K, int(40_000 * size)), int(2_000 * size))
    compare("judging answers as in MATH", "math", rollouts(MATH, int(6_000 * size)), int(1_500 * size))
    whole_command(int(10_000 * size))
    one_hung(int(8_000 * size), deadline=5.0)


if __name__ == "__main__":
    main()
