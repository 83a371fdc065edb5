"""The verifier `code`: which text is the program, which layouts of tests are taken, and what the verdicts are."""

import json
from dataclasses import replace

import pytest
from sandboxes import options

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.verifiers.code import check, find_program, judge
from rlvr_cli.verifiers.judgement import Judgement
from rlvr_cli.verifiers.sandbox import session as sessions
from rlvr_cli.verifiers.sandbox.answers import parse

ADD = "def add(a, b):\n    return a + b\n"
TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]
SUM = "print(sum(map(int, input().split())))"
SUMS = [{"input": "1 2\n", "output": "3\n"}, {"input": "5 6\n", "output": "11"}]


def record(completion, answer=TESTS, **columns):
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return Record({"completion": completion, "answer": text, "finish_reason": "stop", **columns}, "r.jsonl:1")


def judged(completion, answer=TESTS, **changes):
    problem = record(completion, answer)
    check(problem)
    return judge(problem, options(**{"seconds": 10.0, "memory": 256, **changes}))


# ---- which text is the program


@pytest.mark.parametrize(
    ("completion", "program"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("First\n```python\nx = 1\n```\nbetter:\n```py\nx = 2\n```\nDone.", "x = 2\n"),
        ("```python\nx = 1\n```\nIt prints\n```\n1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\n```bash\npython x.py\n```", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```Python3 title=a\nx = 1\n```", "x = 1\n"),
        ("~~~python\nx = '''\n```\n'''\n~~~", "x = '''\n```\n'''\n"),
        ("````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''\n"),
        ("1. do\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y\n"),
        ("x = 1", "x = 1"),
        ("<think>\n```python\nx = 0\n```\n</think>\nx = 1", "\nx = 1"),
        ("```python\r\nx = 1\r\n```\r\n", "x = 1\r\n"),
        ("```python\nx = 1\n", "x = 1\n"),  # the closing fence was a stop string
    ],
)
def test_the_program(completion, program):
    assert find_program(record(completion)) == program


@pytest.mark.parametrize(
    ("completion", "reason", "verdict"),
    [
        ("", "stop", "no_answer"),
        ("<think>hm</think>\n  ", "stop", "no_answer"),
        ("<think>```python\nx = 1\n```", "stop", "no_answer"),
        ("```python\n```", "stop", "no_answer"),
        ("```java\nclass A {}\n```", "stop", "no_answer"),
        ("x = 1", "length", "truncated"),
        ("```python\nx = 1\n```\n```python\nx = ", "length", "truncated"),
        ("<think>x", "length", "truncated"),
    ],
)
def test_no_program(completion, reason, verdict):
    found = find_program(record(completion, finish_reason=reason))
    assert isinstance(found, Judgement)
    assert found.verdict == verdict
    assert found.reward == 0


def test_a_finished_program_counts_although_the_text_was_cut_after_it():
    assert find_program(record("```python\nx = 1\n```\nThis works bec", finish_reason="length")) == "x = 1\n"


# ---- layouts


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"kind": "assert", "tests": TESTS}, "assert"),
        (TESTS, "assert"),
        (json.dumps(TESTS), "assert"),
        ({"assert_case": TESTS, "inputs": [], "outputs": []}, "assert"),
        ({"kind": "stdio", "tests": SUMS}, "stdio"),
        (SUMS, "stdio"),
        ({"inputs": ["1 2\n", ["5", "6"]], "outputs": ["3", ["11"]]}, "stdio"),
        ({"inputs": ["1\n2"], "outputs": ["3"], "fn_name": "add"}, "call"),
        ({"inputs": [[1, 2]], "outputs": [3], "fn_name": "add"}, "call"),
        ({"inputs": ["1 2\n"], "outputs": ["3"], "fn_name": None}, "stdio"),
    ],
)
def test_layouts(answer, kind):
    problem = record("x", answer)
    check(problem)
    assert parse(problem["answer"]).kind == kind


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("assert add(1, 2) == 3", "no JSON"),
        ([], "no tests"),
        ({"kind": "stdio", "tests": []}, "no tests"),
        ({"kind": "pytest", "tests": TESTS}, 'expected "assert" or "stdio"'),
        ({"tests": TESTS}, "expected"),
        ([1], "test 1 is 1"),
        (["assert (1"], "test 1 is no Python"),
        (["assert f(1) == 2", "f(2)"], "test 2 is no test: it asserts nothing"),
        ([{"input": "1"}], "test 1 is"),
        ({"inputs": ["1"], "outputs": []}, "1 inputs and 0 outputs"),
        ({"inputs": ["x"], "outputs": ["3"], "fn_name": "add"}, "test 1: .* no JSON"),
        ({"inputs": ["1"], "outputs": ["3"], "fn_name": "os.system"}, "expected a function's name"),
        (["assert f(1) == 1"] * 1001, "at most 1000"),
        (["assert f(" + "(" * 500 + "1" + ")" * 500 + ") == 1"], "test 1 is no"),
    ],
)
def test_answers_that_hold_no_tests_are_refused_with_their_place(answer, said):
    with pytest.raises(RecordError, match=rf"^r\.jsonl:1: .*{said}"):
        check(record("x", answer))


# ---- verdicts


def test_all_tests_passed():
    found = judged(f"Here:\n```python\n{ADD}```", TESTS)
    assert (found.verdict, found.reward, found.extracted) == ("correct", 1.0, ADD)
    assert found.detail["passed"] == found.detail["tests"] == 2
    assert found.detail["isolation"] in ("unshare", "bwrap")
    assert "in_process" not in found.detail


def test_some_tests_passed():
    found = judged("def add(a, b):\n    return 3 if a > 0 else 1 / 0", [*TESTS, "assert add(1, 3) == 4"])
    assert (found.verdict, found.reward) == ("wrong", 0.0)
    assert (found.detail["passed"], found.detail["tests"]) == (1, 3)
    assert found.detail["failure"] == {"test": 2, "kind": "exception", "text": "ZeroDivisionError: division by zero"}
    assert found.detail["reason"] == "test 2 of 3: exception: ZeroDivisionError: division by zero"


def test_the_text_of_a_failure_is_bounded():
    found = judged("def add(a, b):\n    raise ValueError('x' * 100_000 if a > 0 else chr(0xd800) * 9999)")
    assert len(found.detail["failure"]["text"]) <= 300
    found = judged("def add(a, b):\n    return 'x' * 100_000")
    assert len(found.detail["failure"]["text"]) <= 300


@pytest.mark.parametrize(
    "answer", [{"kind": "stdio", "tests": SUMS}, {"inputs": ["1 2", "5 6"], "outputs": ["3", "11"]}]
)
def test_scripts(answer):
    assert judged(SUM, answer).verdict == "correct"
    wrong = judged("print(3)", answer)
    assert wrong.detail["failure"] == {"test": 2, "kind": "value", "text": "line 1 is '3', expected '11'"}


def test_a_script_has_to_end_well_whatever_it_printed():
    assert judged(f"{SUM}\nimport sys; sys.exit(0)", SUMS).verdict == "correct"
    assert judged(f"{SUM}\nimport sys; sys.exit(1)", SUMS).detail["failure"]["kind"] == "exit"
    assert judged(f"{SUM}\n1 / 0", SUMS).detail["failure"]["kind"] == "exception"
    assert judged(f"import sys\nprint('note', file=sys.stderr)\n{SUM}", SUMS).verdict == "correct"


def test_calls_in_the_layout_of_verl():
    answer = {"inputs": ["[1, 2]\n3", "[]\n0"], "outputs": ["[[1, 3], [2, 3]]", "[]"], "fn_name": "pairs"}
    body = "pairs(self, xs: List[int], n: int) -> List[Tuple[int, int]]:\n        return [(x, n) for x in xs]"
    assert judged(f"class Solution:\n    def {body}", answer).verdict == "correct"
    assert judged("def pairs(xs, n):\n    return [[x, n] for x in xs]", answer).verdict == "correct"
    found = judged("def pairs(xs, n):\n    return []", answer)
    assert (found.verdict, found.detail["passed"]) == ("wrong", 1)


def test_time_that_runs_out_is_a_timeout_unless_a_test_has_failed():
    late = "import time\ndef add(a, b):\n    time.sleep(9 * (a < 0))\n    return {}"
    found = judged(late.format("a + b"), seconds=0.5)
    assert (found.verdict, found.reward, found.detail["passed"]) == ("timeout", 0.0, 1)
    assert found.detail["failure"] == {"test": 2, "kind": "timeout", "text": ""}
    assert judged(late.format("0"), seconds=0.5).verdict == "wrong"
    assert judged("while True: pass", SUMS, seconds=0.5).verdict == "timeout"


def test_a_broken_sandbox_is_an_error_without_a_reward(monkeypatch):
    prepared = options(isolation="unshare", seconds=7.0)
    broken = replace(sessions.view(), emptied=("/no/such/directory",))
    monkeypatch.setattr(sessions, "view", lambda: broken)
    found = judge(record(ADD), prepared)
    assert (found.verdict, found.reward) == ("error", None)
    assert "the sandbox failed: FileNotFoundError" in found.detail["reason"]


# ---- programs that want the reward, and not the work

WRONG = "def add(a, b):\n    return 0\n"
CHEATS = {
    "exit": f"{WRONG}import sys; sys.exit(0)",
    "hard exit": f"{WRONG}import os; os._exit(0)",
    "exit in the call": "def add(a, b):\n    import os; os._exit(0)",
    "exit later": f"import atexit, os\natexit.register(os._exit, 0)\n{WRONG}",
    "printed verdicts": f"{WRONG}print('ok', 'PASSED', '{{\"passed\": true}}', flush=True)",
    "closed streams": f"import os\nfor fd in range(10): \n    try: os.close(fd)\n    except OSError: pass\n{WRONG}",
    "equal to everything": "class E:\n    __eq__ = __ne__ = lambda *_: True\n    __hash__ = None\n"
    "def add(a, b):\n    return E()",
    "an int that lies": "class I(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
    "def add(a, b):\n    return I(0)",
    "a text that lies": "class S(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\n"
    "def add(a, b):\n    return S('3')",
    "patched builtins": "import builtins\nfor n in ('eval', 'exec', 'compile', 'len', 'isinstance', 'type'):\n"
    f"    setattr(builtins, n, lambda *a, **k: True)\n{WRONG}",
    "patched json": f"import json, pickle\njson.dumps = pickle.dumps = lambda *a, **k: '{{\"values\": [3]}}'\n{WRONG}",
    "patched assertion": f"import builtins\nbuiltins.AssertionError = type('A', (BaseException,), {{}})\n{WRONG}",
    "reads the tests": "import gc, re, sys\ndef add(a, b):\n    seen = []\n    f = sys._getframe()\n    while f:\n"
    "        seen += [*f.f_locals.values(), *f.f_globals.values(), *f.f_code.co_consts]\n        f = f.f_back\n"
    "    for o in gc.get_objects():\n        if isinstance(o, dict): seen += list(o.values())\n"
    "        if isinstance(o, (list, tuple)): seen += list(o)\n    for s in seen:\n"
    "        m = isinstance(s, str) and re.search(r'add\\(%s, %s\\) == (\\d+)' % (a, b), s)\n"
    "        if m: return int(m[1])\n    return 0",
    "patched os": f"import os\nos.write = os.read = os._exit = os.fork = lambda *a: 16\n{WRONG}",
    "a thread that ends it": f"import threading, os\nthreading.Timer(0.01, os._exit, [0]).start()\n{WRONG}",
    "traced": f"import sys\nsys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)\n{WRONG}",
}
SPLIT = ["assert add(1, 2) == 3", "assert add(3, 4) == 7"]
UNSPLIT = ["for i in range(2, 5):\n    assert add(i, i) == 2 * i", "assert all(add(i, 1) == i + 1 for i in range(3))"]
NEAR = ["assert abs(add(1, 2) - 3) < 1e-6", "assert add(3, 4) in [7]", "assert add(1, 1) > 1 and add(1, 1) != 3"]


@pytest.mark.parametrize("tests", [SPLIT, UNSPLIT, NEAR], ids=["split", "in process", "near"])
@pytest.mark.parametrize("program", CHEATS.values(), ids=CHEATS.keys())
def test_cheats_pass_nothing(program, tests):
    found = judged(program, tests)
    assert found.reward == 0, found.detail
    assert found.detail["passed"] == 0 or "return 0" in program


@pytest.mark.parametrize("tests", [SPLIT, UNSPLIT, NEAR], ids=["split", "in process", "near"])
def test_the_same_tests_pass_a_right_program(tests):
    found = judged(ADD, tests)
    assert found.verdict == "correct", found.detail
    assert found.detail.get("in_process", 0) == (len(tests) if tests is UNSPLIT else 0)


def test_builtin_names_in_tests_mean_what_they_mean():
    """A loop over nothing would assert nothing."""
    empty = "import builtins\nbuiltins.range = range = lambda *a: []\nbuiltins.all = all = lambda *a: True\n"
    assert judged(empty + WRONG, UNSPLIT).detail["passed"] == 0


@pytest.mark.parametrize("program", ["print(3); print(11)", "", "print(input())", "import sys; sys.exit(0)"])
def test_scripts_that_print_something_else_pass_nothing(program):
    if not program:
        program = "pass"
    assert judged(program, SUMS).reward == 0


def test_what_one_test_expects_is_nowhere_in_the_process():
    program = (
        "import gc, sys\nhay = []\ndef add(a, b):\n    for o in gc.get_objects():\n"
        "        hay.extend(repr(x) for x in gc.get_referents(o) if type(x) in (int, str))\n"
        "    return sum(''.join(['918', '273', '645']) in x for x in hay)"
    )
    found = judged(program, ["assert add(1, 2) == 918273645", "wanted = 918273645\nassert add(1, 2) == wanted"])
    assert found.detail["failure"]["text"] == "not true: 0 == 918273645"


# ---- programs that are unusual, and right

ODD = {
    "a class": "class Solution:\n    def add(self, a, b): return a + b\nadd = Solution().add",
    "dataclass": f"from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\nP()\n{ADD}",
    "future": f"from __future__ import annotations\nfrom typing import List\nx: List[Missing] = []\n{ADD}",
    "main guard": f"{ADD}\nif __name__ == '__main__':\n    print(add(int(input()), 1))",
    "prints a lot": f"print('x' * 10_000_000)\n{ADD}",
    "cached": f"from functools import lru_cache\n@lru_cache(None)\n{ADD}",
    "threads": "from concurrent.futures import ThreadPoolExecutor as E\ndef add(a, b):\n"
    "    with E(3) as e: return sum(e.map(int, [a, b]))",
    "asyncio": "import asyncio\nasync def go(a, b):\n    await asyncio.sleep(0)\n    return a + b\n"
    "def add(a, b): return asyncio.run(go(a, b))",
    "recursion": "import sys\nsys.setrecursionlimit(30_000)\ndef add(a, b):\n"
    "    def f(n): return 0 if n == 0 else 1 + f(n - 1)\n    return a + b + f(9000) - 9000",
    "numbers of its own": "from fractions import Fraction\ndef add(a, b): return Fraction(a) + b",
    "a subclass": "class N(int): pass\ndef add(a, b): return N(a + b)",
    "its own print": f"def print(*a): pass\nlen = None\n{ADD}",
    "signals": f"import signal\nsignal.signal(signal.SIGALRM, lambda *a: None); signal.alarm(1)\n{ADD}",
    "its own streams": f"import sys, io\nsys.stdout = io.StringIO(); sys.stderr.close(); sys.stdin.close()\n{ADD}",
}


@pytest.mark.parametrize("program", ODD.values(), ids=ODD.keys())
def test_unusual_programs_that_are_right(program):
    found = judged(program, SPLIT)
    assert found.verdict == "correct", found.detail


def test_a_record_without_an_answer_is_refused():
    with pytest.raises(RecordError, match="answer is missing; code needs tests"):
        check(Record({"completion": ADD}, "r.jsonl:1"))
