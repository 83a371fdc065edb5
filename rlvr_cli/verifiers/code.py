"""Python programs against tests, in a sandbox (sandbox/, which says what it protects and what not).

The program is the last block fenced as Python (```python, ```py; where no block says so, the last that says nothing),
or all of the text when nothing is fenced, always after the last closing think tag. sandbox/answers.py lists the layouts
of the answer, a problem's tests.

All tests have to pass. An assertion is split: the program's process gets `f(args)` without the value that is expected.
Assertions of one problem run one after another in one process, as in a script, and in a new one when it has died. A
script runs once a test, from nothing; what it prints counts when it ends by itself with exit code 0, whatever it writes
to standard error. White space at the ends of lines and empty lines at the end do not count; 3.0 is not 3.

The detail says how many tests passed, and of the first that did not, its number, kind (`value`, `exception`, `exit`,
`signal`, `timeout`, `memory`, `output`) and text. `timeout` is the verdict when time ran out before a test failed.
"""

import re
import textwrap
import time
from dataclasses import dataclass
from typing import Any

import orjson

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import nothing, visible
from rlvr_cli.verifiers.judgement import Judgement, correct, error, no_answer, timeout, truncated, wrong
from rlvr_cli.verifiers.sandbox.answers import Call, Script, Tests, parse
from rlvr_cli.verifiers.sandbox.assertions import Test
from rlvr_cli.verifiers.sandbox.compare import ValueProblem, decode, same_json, same_text, short
from rlvr_cli.verifiers.sandbox.compare import check as check_values
from rlvr_cli.verifiers.sandbox.options import Options
from rlvr_cli.verifiers.sandbox.probe import prepare
from rlvr_cli.verifiers.sandbox.session import Message, SandboxError, session

_FENCE = re.compile(r"^([ \t]*)(```+|~~~+)[ \t]*([^\n`]*)$", re.MULTILINE)
_PYTHON = {"python", "py", "python3", "py3"}
_KINDS = {"stdio": "stdio", "assert": "assert", "call": "assert"}
# what starter code of call tests takes for granted
_PRELUDE = """
import bisect, collections, copy, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache, cmp_to_key, lru_cache, reduce
from heapq import heapify, heappop, heappush
from itertools import accumulate, chain, combinations, permutations, product
from math import ceil, floor, gcd, inf, sqrt
from typing import *
sys.setrecursionlimit(100_000)
"""


@dataclass(frozen=True)
class Outcome:
    """How one test ended: why it failed, if it did, and whether that was decided in the program's own process."""

    kind: str = ""
    text: str = ""
    in_process: bool = False


def check(record: Record) -> None:
    """The answer holds tests. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="code needs tests, as JSON")
    try:
        parse(record["answer"])
    except ValueError as bad:
        raise RecordError(f"{record.where}: {bad}") from bad


def judge(record: Record, options: Options = Options()) -> Judgement:  # noqa: B008
    """Run the program of the completion on the tests of the answer."""
    program = find_program(record)
    if isinstance(program, Judgement):
        return program
    tests = parse(record["answer"])
    options = prepare(options)
    outcomes: dict[int, Outcome] = {}
    begun = time.monotonic()
    try:
        for message in session(options).run(_KINDS[tests.kind], program, _inside(tests), _prelude(tests)):
            if 0 <= message.number < len(tests.tests):
                outcomes[message.number] = _outcome(message, tests.tests[message.number])
    except (SandboxError, OSError) as bad:
        return error(f"the sandbox failed: {bad}", program)
    return _judgement(program, tests, outcomes, options, time.monotonic() - begun)


def find_program(record: Record) -> str | Judgement:
    """The program of a completion, or the judgement when it has none."""
    text = visible(record["completion"], record.get("prompt") or "")
    if text is None:
        return nothing(record, "the thinking is not closed")
    blocks, closed = _blocks(text)
    cut = record.get("finish_reason") == "length"
    if cut and not (blocks and closed):
        return truncated("the program is not finished")
    named = [content for language, content in blocks if language in _PYTHON]
    plain = [content for language, content in blocks if not language]
    if blocks and not named and not plain:
        return no_answer("no block is fenced as Python")
    program = (named or plain or [text])[-1]
    return program if program.strip() else no_answer("there is no program")


def _blocks(text: str) -> tuple[list[tuple[str, str]], bool]:
    """The fenced blocks in order, language and content, and whether the last is closed."""
    blocks: list[tuple[str, str]] = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence[2].startswith(opening[2]) and not fence[3].strip():
            blocks.append(_block(opening, text[opening.end() + 1 : fence.start()]))
            opening = None
    if opening is not None:  # the closing fence may have been a stop string
        blocks.append(_block(opening, text[opening.end() + 1 :]))
    return blocks, opening is None


def _block(opening: re.Match[str], content: str) -> tuple[str, str]:
    language = (opening[3].split() or [""])[0].strip("{.}").lower()
    return language, textwrap.dedent(content) if opening[1] else content


def _inside(tests: Tests) -> list[Any]:
    """What the program's side is told of the tests: nothing of what is expected."""
    told: list[Any] = []
    for test in tests.tests:
        match test:
            case Script(input=text):
                told.append(text)
            case Call(expression=expression):
                either = f"Solution().{expression} if 'Solution' in globals() else {expression}"
                told.append({"steps": [["eval", either]]})
            case Test(steps=steps):
                told.append({"steps": steps})
    return told


def _prelude(tests: Tests) -> str:
    return _PRELUDE if tests.kind == "call" else ""


def _outcome(message: Message, test: Test | Script | Call) -> Outcome:
    """What a message about a test means."""
    in_process = isinstance(test, Test) and test.in_process
    if message.kind == "F":
        kind, text = _failure(message.content)
        return Outcome(kind, text, in_process)
    if isinstance(test, Script):
        difference = same_text(message.content, test.output)
        return Outcome("value", difference) if difference else Outcome()
    try:
        values = decode(message.content)
        if isinstance(test, Call):
            return Outcome() if _equal(values[0], test.expected) else Outcome("value", _difference(values[0], test))
        reason, in_process = check_values(test, values)
    except ValueProblem as bad:
        return Outcome("value", str(bad), in_process)
    return Outcome("value", reason, in_process) if reason else Outcome(in_process=in_process)


def _failure(content: bytes) -> tuple[str, str]:
    """The kind and text of a failure that the runner reports."""
    kind, text = orjson.loads(content)
    return str(kind), str(text)


def _equal(value: Any, expected: Any) -> bool:
    """Equality with a value of verl's call tests, where a single one may be wrapped in a list."""
    wrapped = isinstance(expected, list) and len(expected) == 1
    return same_json(value, expected) or (wrapped and same_json(value, expected[0]))


def _difference(value: Any, test: Call) -> str:
    return f"{short(value)}, expected {short(test.expected)}"


def _judgement(program: str, tests: Tests, outcomes: dict[int, Outcome], options: Options, seconds: float) -> Judgement:
    """The verdict of all tests together."""
    total = len(tests.tests)
    missing = Outcome("timeout") if seconds >= options.seconds else Outcome("killed", "the sandbox was killed with it")
    every = [outcomes.get(number, missing) for number in range(total)]
    passed = sum(not outcome.kind for outcome in every)
    detail: dict[str, Any] = {"passed": passed, "tests": total, "isolation": options.isolation}
    if any(outcome.in_process for outcome in every):
        detail["in_process"] = sum(outcome.in_process for outcome in every)
    if passed == total:
        return correct(program, **detail)
    number, first = next((number, outcome) for number, outcome in enumerate(every, 1) if outcome.kind)
    detail["failure"] = {"test": number, "kind": first.kind, "text": first.text}
    if first.kind == "timeout":
        return timeout(program, options.seconds, **detail)
    reason = f"test {number} of {total}: {first.kind}" + (f": {first.text}" if first.text else "")
    return wrong(program, reason, **detail)
