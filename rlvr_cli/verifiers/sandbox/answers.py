"""The tests that a problem's answer holds, in every layout that is taken. All of them are JSON:

{"kind": "assert", "tests": ["assert add(1, 2) == 3", ...]}       each a Python text with at least one assertion
{"kind": "stdio", "tests": [{"input": "1 2\\n", "output": "3\\n"}, ...]}
["assert add(1, 2) == 3", ...]                                    open-instruct's
[{"input": "1 2\\n", "output": "3\\n"}, ...]                        open-instruct's, for standard input
{"inputs": ["1 2\\n", ...], "outputs": ["3\\n", ...]}               verl's; a list in place of a text is its lines
{"inputs": ["1\\n2", ...], "outputs": ["3", ...], "fn_name": "add"}  verl's calls: each input one JSON value a line,
                                                                  or a list of the arguments, and an output in JSON
{"assert_case": ["assert add(1, 2) == 3", ...], ...}              verl's assertions
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from rlvr_cli.verifiers.sandbox.assertions import Test, split

MOST = 1000  # tests of one problem


@dataclass(frozen=True)
class Script:
    """A test of a whole program: what it reads, and what it has to print."""

    input: str
    output: str


@dataclass(frozen=True)
class Call:
    """A test of one function: an expression that calls it, and the value in JSON that it has to give."""

    expression: str
    expected: Any


@dataclass(frozen=True)
class Tests:
    """All tests of one problem, of one kind: `stdio` has scripts, `assert` assertions, `call` calls."""

    kind: str
    tests: tuple[Test | Script | Call, ...]


@lru_cache(maxsize=8)  # a group's completions have one answer
def parse(answer: str) -> Tests:
    """The tests. Raises ValueError saying what is wrong with the answer, and what is expected."""
    try:
        data = orjson.loads(answer)
    except ValueError as bad:
        raise ValueError(f"answer is no JSON ({bad})") from bad
    if isinstance(data, str):  # JSON in JSON, as some converters leave it
        return parse(data)
    tests = _parse(data)
    if not tests.tests:
        raise ValueError("answer has no tests; a program that nothing tests cannot be judged")
    if len(tests.tests) > MOST:
        raise ValueError(f"answer has {len(tests.tests)} tests, at most {MOST} are run; leave some out")
    return tests


def _parse(data: Any) -> Tests:
    match data:
        case {"kind": "assert", "tests": list(tests)} | {"assert_case": [_, *_] as tests}:
            return _assertions(tests)
        case {"kind": "stdio", "tests": list(tests)}:
            return _scripts(tests)
        case {"kind": kind} if kind not in ("assert", "stdio"):
            raise ValueError(f'kind is {_shown(kind)}, expected "assert" or "stdio"')
        case {"inputs": list(inputs), "outputs": list(outputs), **others}:
            if len(inputs) != len(outputs):
                raise ValueError(f"there are {len(inputs)} inputs and {len(outputs)} outputs; each needs the other")
            name = others.get("fn_name")
            if name is not None:
                return _calls(name, inputs, outputs)
            return _scripts([{"input": one, "output": two} for one, two in zip(inputs, outputs, strict=True)])
        case [str(), *_]:
            return _assertions(data)
        case list():
            return _scripts(data)
    raise ValueError(
        f'answer is {_shown(data)}, expected {{"kind": "assert", "tests": ["assert f(1) == 2"]}} or '
        '{"kind": "stdio", "tests": [{"input": "1", "output": "2"}]}'
    )


def _assertions(texts: list[Any]) -> Tests:
    tests = []
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise ValueError(f"test {number} is {_shown(text)}, expected a text such as assert f(1) == 2")
        try:
            tests.append(split(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as bad:
            said = f"no Python ({bad.msg})" if isinstance(bad, SyntaxError) else f"no test: {bad or 'nested too deep'}"
            raise ValueError(f"test {number} is {said}; write assertions such as assert f(1) == 2") from bad
    return Tests("assert", tuple(tests))


def _scripts(items: list[Any]) -> Tests:
    tests = []
    for number, item in enumerate(items, 1):
        texts = [_text(item.get(name)) for name in ("input", "output")] if isinstance(item, dict) else [None]
        if None in texts:
            raise ValueError(f'test {number} is {_shown(item)}, expected {{"input": text, "output": text}}')
        tests.append(Script(*[text for text in texts if text is not None]))
    return Tests("stdio", tuple(tests))


def _text(value: Any) -> str | None:
    """A text, or its lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return value if isinstance(value, str) else None


def _calls(name: Any, inputs: list[Any], outputs: list[Any]) -> Tests:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"fn_name is {_shown(name)}, expected a function's name")
    tests = []
    for number, (given, wanted) in enumerate(zip(inputs, outputs, strict=True), 1):
        try:
            arguments = [_loads(line) for line in given.split("\n") if line] if isinstance(given, str) else given
            expected = _loads(wanted) if isinstance(wanted, str) else wanted
        except ValueError as bad:
            raise ValueError(f"test {number}: {bad}; with fn_name, inputs and outputs are JSON") from bad
        if not isinstance(arguments, list):
            raise ValueError(f"test {number}: its input is {_shown(given)}, expected a list of arguments")
        words = ", ".join(repr(argument) for argument in arguments)
        tests.append(Call(f"{name}({words})", expected))
    return Tests("call", tuple(tests))


def _loads(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError as bad:
        raise ValueError(f"{_shown(text)} is no JSON") from bad


def _shown(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
