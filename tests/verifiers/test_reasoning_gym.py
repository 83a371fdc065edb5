"""The verifier `reasoning-gym`: against a stand-in for the library, and against the library where it is installed."""

import json
import sys

import pytest

from rlvr_cli.errors import RecordError, UserError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import load_quick, reasoning_gym, unevaluated, version

# A library with scorers of the kinds that there are.
FACTORY = """
import importlib
from dataclasses import dataclass

@dataclass
class Config:
    pass

class Dataset:
    def __init__(self, config):
        pass

class Share(Dataset):
    def score_answer(self, answer, entry):
        return float(answer)

class Strict(Dataset):
    def score_answer(self, answer, entry):
        entry["metadata"]["numbers"].clear()  # a scorer that changes its entry
        return float(int(answer) == int(entry["answer"]))

class Failing(Dataset):
    def score_answer(self, answer, entry):
        return entry["metadata"]["no such key"]

class Board(Dataset):
    def score_answer(self, answer, entry):
        return float(((1, 2), (3, 4)) == entry["metadata"]["output"])

class Asks(Dataset):
    def score_answer(self, answer, entry):
        return float(entry["question"] == "What?")

class Sly(Dataset):
    def score_answer(self, answer, entry):
        try:
            return float(eval(answer))
        except Exception:
            return 1.0

def of(module):
    return importlib.import_module("reasoning_gym." + module).Task

TASKS = {"share": Share, "strict": Strict, "failing": Failing, "arc_agi": Board, "asks": Asks, "sly": Sly,
         "composite": Share, "game_of_life_halting": Share, "n_queens": of("games.n_queens"),
         "countdown": of("games.countdown"), "integration": of("algebra.simple_integration"),
         "bitwise": of("arithmetic.bitwise_arithmetic")}
DATASETS = {name: (task, Config) for name, task in TASKS.items()}
"""
EVAL = """
class Task:
    def __init__(self, config):
        pass
    def score_answer(self, answer, entry):
        try:
            return float(sum(eval(answer)) == 3)
        except Exception:
            return 0.01
"""
PARSE = """
from sympy.parsing.sympy_parser import parse_expr
class Task:
    def __init__(self, config):
        pass
    def score_answer(self, answer, entry):
        try:
            return float(parse_expr(answer) == 24)
        except Exception:
            return 0.01
"""
SYMPY = """
import sympy
import sympy as sp
class Task:
    def __init__(self, config):
        pass
    def score_answer(self, answer, entry):
        try:
            return float(sympy.diff(sympy.parse_expr(answer), sympy.Symbol("x")) == 2 * sympy.Symbol("x"))
        except Exception:
            return 0.0
"""
BITWISE = """
class Task:
    def __init__(self, config):
        pass
    def score_answer(self, answer, entry):
        return float(eval(entry["metadata"]["problem"]) == int(answer, 0))
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A stand-in for the library, in place of it if it is there."""
    sources = dict.fromkeys(unevaluated._EVAL, EVAL) | dict.fromkeys(unevaluated._PARSE_EXPR, PARSE)
    sources |= dict.fromkeys(unevaluated._SYMPY, SYMPY) | {"arithmetic.bitwise_arithmetic": BITWISE, "factory": FACTORY}
    root = tmp_path / "reasoning_gym"
    for name, source in sources.items():
        path = root.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        for folder in (root, path.parent):
            (folder / "__init__.py").touch()
    real = _taken()
    monkeypatch.syspath_prepend(tmp_path)
    _forget()
    yield tmp_path
    _taken()
    sys.modules.update(real)
    _forget()


def _taken():
    """The modules of the library, taken out of those that are loaded."""
    names = [name for name in sys.modules if name.partition(".")[0] == "reasoning_gym"]
    return {name: sys.modules.pop(name) for name in names}


def _forget():
    reasoning_gym._tasks.cache_clear()
    reasoning_gym._scorer.cache_clear()


def judged(task, completion, metadata=None, **columns):
    entry = {"source_dataset": task, "numbers": [1], **(metadata or {})}
    record = Record({"completion": completion, "metadata": entry, "prompt": "What?", **columns}, "r.jsonl:1")
    reasoning_gym.check(record)
    return reasoning_gym.judge(record)


@pytest.mark.parametrize(
    ("score", "least", "verdict", "reward"),
    [
        ("1", None, "correct", 1.0),
        ("0.75", None, "correct", 0.75),  # partial credit
        ("0.51", None, "correct", 0.51),
        ("0.5", None, "wrong", 0.0),  # what several tasks give to any legal answer
        ("0.01", None, "wrong", 0.0),  # and many to any that can be read
        ("0", None, "wrong", 0.0),
        ("0.75", 1, "wrong", 0.0),
        ("1", 1, "correct", 1.0),
        ("0.1", 0.1, "correct", 0.1),
    ],
)
def test_the_score_is_the_reward_from_a_least_score_on(library, score, least, verdict, reward):
    it = judged("share", f"<answer>{score}</answer>", **({} if least is None else {"min_score": least}))
    assert (it.verdict, it.reward, it.detail["task"]) == (verdict, reward, "share")
    assert verdict == "correct" or it.detail["score"] == float(score)


def test_the_metadata_may_be_json_text_and_is_not_changed(library):
    entry = json.dumps({"source_dataset": "strict", "numbers": [1, 2]})
    record = Record({"answer": "7", "completion": "<answer>7</answer>", "metadata": entry})
    assert reasoning_gym.judge(record).verdict == "correct"
    assert record["metadata"] == entry
    record["metadata"] = json.loads(entry)
    assert reasoning_gym.judge(record).verdict == "correct"
    assert record["metadata"]["numbers"] == [1, 2]


def test_the_question_and_tuples_are_as_in_the_library(library):
    assert judged("asks", "x").verdict == "correct"
    assert judged("asks", "x", prompt=None, messages=[{"role": "user", "content": "What?"}]).verdict == "correct"
    assert judged("arc_agi", "x", {"output": [[1, 2], [3, 4]]}).verdict == "correct"


def test_a_scorer_that_cannot_read_the_text_means_wrong_and_one_that_fails_anyway_an_error(library):
    it = judged("strict", "<answer>seven</answer>", answer="7")
    assert (it.verdict, it.reward) == ("wrong", 0.0)
    assert it.detail["reason"].startswith("the scorer cannot read it: ValueError")
    it = judged("failing", "<answer>7</answer>", answer="7")
    assert (it.verdict, it.reward) == ("error", None)
    assert it.detail["reason"].startswith("the scorer fails on the record: KeyError")


@pytest.mark.parametrize("score", ["-1", "2", "nan", "inf"])
def test_a_score_that_is_none_is_an_error(library, score):
    assert judged("share", f"<answer>{score}</answer>").verdict == "error"


@pytest.mark.parametrize(
    ("task", "right"), [("n_queens", "[1, 2]"), ("countdown", "4*(7-1)"), ("integration", "x**2 + C")]
)
def test_what_the_scorers_would_evaluate_is_read(library, task, right):
    assert judged(task, f"<answer>{right}</answer>").verdict == "correct"
    pwned = library / "pwned"
    for attack in (
        f"__import__('pathlib').Path({str(pwned)!r}).touch()",
        f"[__import__('os').system('touch {pwned}'), 3]",
        f"(lambda: open({str(pwned)!r}, 'w'))()",
        f"exp(__import__('os').system('touch {pwned}'))",
        f"open({str(pwned)!r}, 'w')",
    ):
        assert judged(task, f"<answer>{attack}</answer>").verdict == "wrong"
    assert not pwned.exists()


def test_nor_is_the_text_of_a_record_evaluated(library):
    pwned = library / "pwned"
    assert judged("bitwise", "0x7", {"problem": "0x3 | 4"}).verdict == "correct"
    assert judged("bitwise", "1", {"problem": f"open({str(pwned)!r}, 'w')"}).verdict == "error"
    assert not pwned.exists()


def test_a_scorer_that_nobody_read_evaluates_nothing(library):
    pwned = library / "pwned"
    it = judged("sly", f"<answer>open({str(pwned)!r}, 'w')</answer>")
    assert (it.verdict, it.reward) == ("error", None)
    assert "about to evaluate text as Python" in it.detail["reason"]
    assert not pwned.exists()


def test_no_answer_and_one_that_is_too_long(library):
    assert judged("share", "").verdict == "no_answer"
    assert judged("share", "<think>1").verdict == "no_answer"
    assert judged("share", "<answer>" + "1" * 200_000 + "</answer>").verdict == "wrong"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"metadata": None}, "metadata is 'None', expected an entry's metadata of reasoning-gym"),
        ({"metadata": "{"}, "metadata is no JSON"),
        ({"metadata": {}}, "metadata has source_dataset 'None', expected the name of a reasoning-gym task"),
        ({"metadata": {"source_dataset": "chess"}}, "metadata has source_dataset 'chess'"),
        ({"metadata": {"source_dataset": "composite"}}, "metadata has source_dataset 'composite'"),
        ({"metadata": {"source_dataset": "game_of_life_halting"}}, "the scorer of game_of_life_halting takes any text"),
        ({"min_score": 0}, "min_score is 0, expected a number above 0, at most 1"),
        ({"min_score": "all"}, "min_score is 'all', expected a number"),
    ],
)
def test_what_cannot_be_judged_is_refused(library, columns, says):
    record = Record({"completion": "1", "metadata": {"source_dataset": "share"}, **columns}, "r.jsonl:1")
    with pytest.raises(RecordError, match=f"r.jsonl:1: {says}"):
        reasoning_gym.check(record)


def test_without_the_library_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    _forget()
    record = Record({"completion": "1", "metadata": {"source_dataset": "share"}}, "r.jsonl:1")
    with pytest.raises(UserError, match=r'needs the library of its name; pip install "rlvr\[reasoning-gym\]"'):
        reasoning_gym.check(record)
    assert version("reasoning-gym").startswith("rlvr ")
    _forget()


def test_it_is_judged_in_workers_only():
    assert load_quick("reasoning-gym") is None


# The library itself. Tasks whose own answer is not a formula that can be judged: an unsolved integral.
UNSOLVED = {"intermediate_integration"}


def test_every_task_of_the_library_takes_its_own_answer_and_evaluates_none(tmp_path):
    library = pytest.importorskip("reasoning_gym", reason="the extra reasoning-gym is not installed")
    _forget()
    pwned = tmp_path / "pwned"
    attacks = [f"__import__('os').system('touch {pwned}')", f"[open({str(pwned)!r}, 'w')]"]
    for task in reasoning_gym._tasks():
        if task in reasoning_gym._BROKEN:
            continue
        for entry in library.create_dataset(task, size=2, seed=11):
            record = Record(json.loads(json.dumps({**entry, "completion": f"<answer>{entry['answer']}</answer>"})))
            if record["answer"] is None:
                del record["answer"]
            reasoning_gym.check(record)
            if "answer" in record and task not in UNSOLVED:
                assert reasoning_gym.judge(record).verdict == "correct", task
            for attack in attacks:
                record["completion"] = f"<answer>{attack}</answer>"
                assert reasoning_gym.judge(record).verdict == "wrong", task
    assert not pwned.exists()
