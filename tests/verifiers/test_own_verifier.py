"""A user's own verifier: module:function."""

import sys

import pytest

from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import VERIFIERS, code_digest, load, load_check, load_quick, version

SOURCE = """
from rlvr_cli.verifiers.judgement import Judgement, wrong
__version__ = "7"
def right(record): return record["completion"] == record["answer"]
def score(record): return float(record["completion"])
def judgement(record): return wrong("x", "because")
def columns(record): return {"reward": 0.25, "extracted": "x", "style": "terse"}
def verdict(record): return {"verdict": "no_answer"}
def text(record): return "yes"
def nothing(record): return None
def crash(record): return 1 / 0
def minus(record): return -1.0
def infinite(record): return float("inf")
def odd(record): return {"verdict": "wrong", "reward": 0.5}
def unstorable(record): return {"reward": 1.0, "it": object()}
def meddles(record):
    record.clear()
    return True
number = 3
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "our_judge.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("our_judge", None)


def judge(function, completion="4"):
    return load(f"our_judge:{function}")(Record({"answer": "4", "completion": completion}))


@pytest.mark.parametrize(
    ("function", "completion", "verdict", "reward"),
    [
        ("right", "4", "correct", 1.0),
        ("right", "5", "wrong", 0.0),
        ("score", "0.5", "correct", 0.5),
        ("score", "0", "wrong", 0.0),
        ("judgement", "4", "wrong", 0.0),
        ("columns", "4", "correct", 0.25),
        ("verdict", "4", "no_answer", 0.0),
    ],
)
def test_what_it_may_return(function, completion, verdict, reward):
    it = judge(function, completion)
    assert (it.verdict, it.reward) == (verdict, reward)


def test_other_keys_of_a_dict_are_detail():
    it = judge("columns")
    assert (it.extracted, it.detail) == ("x", {"style": "terse"})


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("text", "returned str"),
        ("nothing", "returned NoneType"),
        ("crash", "ZeroDivisionError"),
        ("minus", "shaping"),
        ("infinite", "reward inf"),
        ("odd", "reward 0.5 with verdict wrong"),
        ("unstorable", "not JSON serializable"),
    ],
)
def test_anything_else_is_an_error_and_never_a_reward(function, says):
    it = judge(function)
    assert (it.verdict, it.reward) == ("error", None)
    assert says in it.detail["reason"]


def test_it_cannot_change_the_record():
    record = Record({"answer": "4", "completion": "4"})
    assert load("our_judge:meddles")(record).verdict == "correct"
    assert record == {"answer": "4", "completion": "4"}


def test_its_version_is_its_modules():
    load("our_judge:right")
    assert version("our_judge:right") == "7"


@pytest.mark.parametrize("name", ["our_judge:missing", "no_such_module:f", "our_judge:number", ":", "our_judge:"])
def test_what_cannot_be_called_is_wrong_usage(name):
    with pytest.raises(UsageError, match="verifier"):
        load(name)


def test_an_unknown_name_names_those_there_are():
    names = ", ".join(VERIFIERS)
    with pytest.raises(UsageError, match=f"no verifier 'maths'; there are {names}, and command:PROGRAM and module:"):
        load("maths")


@pytest.mark.parametrize("name", VERIFIERS)
def test_each_listed_verifier_can_be_loaded(name):
    assert callable(load(name))
    assert callable(load_check(name))
    quick = load_quick(name)
    assert quick is None or callable(quick)
    assert version(name).startswith("rlvr ")


def test_nothing_of_a_users_own_is_called_outside_a_worker():
    assert load_quick("our_judge:right") is None


def test_a_name_that_means_nothing_is_found_before_a_worker_is_started():
    with pytest.raises(UsageError, match="no_such_module"):
        load_quick("no_such_module:f")


def test_its_version_is_known_where_only_workers_have_called_it():
    assert version("our_judge:right") == "7"


def test_running_out_of_memory_is_the_workers_to_tell_of(tmp_path, monkeypatch):
    (tmp_path / "eating.py").write_text("def judge(record):\n    raise MemoryError\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MemoryError):
        load("eating:judge")(Record({"completion": "x"}))


def test_a_reason_is_short(tmp_path, monkeypatch):
    (tmp_path / "wordy.py").write_text("def judge(record):\n    raise ValueError('x' * 9999)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert len(load("wordy:judge")(Record({"completion": "x"})).detail["reason"]) == 500


def test_a_judge_that_exits_has_failed(tmp_path, monkeypatch):
    (tmp_path / "leaving.py").write_text("def judge(record):\n    raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load("leaving:judge")(Record({"completion": "x"})).verdict == "error"


def test_the_code_of_a_judge_is_part_of_what_a_resumed_run_depends_on(tmp_path, monkeypatch):
    file = tmp_path / "changing.py"
    file.write_text("def judge(record):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = code_digest("changing:judge")
    assert code_digest("changing:judge") == before
    file.write_text("def judge(record):\n    return 0\n")
    assert code_digest("changing:judge") != before
    assert code_digest("math") != code_digest("gsm8k")
