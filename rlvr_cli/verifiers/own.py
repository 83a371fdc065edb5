"""A user's own verifier, named as `module:function`, the module sought in the working directory too.

The function takes a record and returns a Judgement, a truth value, a score of 0 or more (more than 0 is `correct` with
that reward), or a dict of `verdict` and `reward` (one can be left out), `extracted`, and anything else as detail.
Whatever else it returns or raises is the judge's fault: verdict `error`, no reward. It runs in worker processes
(pool.py): a record that it does not judge within the deadline, or that makes it run out of memory or crash, is
`timeout`.
"""

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from rlvr_cli.errors import UsageError
from rlvr_cli.records import CHOICES, Record
from rlvr_cli.verifiers.judgement import Judgement, error


def load_own(name: str) -> Callable[[Record], Judgement]:
    """The function behind `module:function`, returning judgements whatever it returns. Raises UsageError."""
    function = _find(name)

    def judge(record: Record) -> Judgement:
        try:
            judgement = as_judgement(function(Record(record, record.where)))  # a copy: a judge changes no record
            orjson.dumps([judgement.extracted, judgement.detail])  # what no record can hold is the judge's fault too
        except MemoryError:
            raise  # it is the worker's to tell of
        except (Exception, SystemExit) as bad:  # a judge that exits is a judge that failed
            return error(f"{type(bad).__name__}: {bad}".encode(errors="replace").decode()[:500])
        return judgement

    return judge


def own_version(name: str) -> str:
    """The `__version__` of the user's module; `unversioned` when it has none. Raises UsageError."""
    _find(name)
    module = sys.modules.get(name.partition(":")[0])
    return str(getattr(module, "__version__", "unversioned"))


def as_judgement(result: Any) -> Judgement:
    """What a user's function returned, as a judgement. Raises TypeError or ValueError when it is none."""
    if isinstance(result, Judgement):
        return _checked(result)
    if isinstance(result, dict):
        detail = {key: value for key, value in result.items() if key not in ("verdict", "reward", "extracted")}
        verdict, reward = result.get("verdict"), result.get("reward")
        if verdict is None:
            verdict = _scored(reward).verdict
        elif reward is None and verdict != "error":
            reward = 1.0 if verdict == "correct" else 0.0
        return _checked(Judgement(verdict, reward, result.get("extracted"), detail))
    return _scored(result)


def _scored(score: Any) -> Judgement:
    if not isinstance(score, bool | int | float):
        raise TypeError(f"a verifier returned {type(score).__name__}, expected a Judgement, bool, int, float or dict")
    return _checked(Judgement("correct" if score > 0 else "wrong", float(score)))


def _checked(judgement: Judgement) -> Judgement:
    """The judgement, when its reward fits its verdict."""
    verdict, reward = judgement.verdict, judgement.reward
    if verdict not in CHOICES["verdict"]:
        raise ValueError(f"a verifier returned verdict {verdict!r}, expected one of {', '.join(CHOICES['verdict'])}")
    if verdict == "error":
        return error(
            str(judgement.detail.get("reason", "no reason given")),
            judgement.extracted,
            **{key: value for key, value in judgement.detail.items() if key != "reason"},
        )
    if not isinstance(reward, bool | int | float) or not math.isfinite(reward) or reward < 0:
        raise ValueError(f"a verifier returned reward {reward!r}, expected 0 or more; put penalties in column shaping")
    if verdict != "correct" and reward != 0:
        raise ValueError(f"a verifier returned reward {reward!r} with verdict {verdict}, which has reward 0")
    if not isinstance(judgement.extracted, str | None):
        raise TypeError(f"a verifier returned extracted as {type(judgement.extracted).__name__}, expected a string")
    return Judgement(verdict, float(reward), judgement.extracted, dict(judgement.detail))


def _find(name: str) -> Callable[[Record], Any]:
    module_name, _, function_name = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # a console script does not look in the working directory
        sys.path.append(here)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (Exception, SystemExit) as bad:  # importing runs the module
        raise UsageError(f"verifier {name}: {bad}; write module:function of a module that can be imported") from bad
    if not callable(function):
        raise UsageError(f"verifier {name} is a {type(function).__name__}, expected a function of one record")
    found: Callable[[Record], Any] = function
    return found
