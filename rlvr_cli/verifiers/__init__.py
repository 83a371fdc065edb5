"""Verifiers: each judges one completion against its problem's answer. One file a verifier, imported on use.

A verifier's file has `check(record)`, which raises RecordError for a problem that it cannot judge, and `judge(record)`,
which returns a Judgement. `module:function` names a user's own.
"""

import importlib
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import rlvr_cli
from rlvr_cli.errors import UsageError
from rlvr_cli.policy import digest_files
from rlvr_cli.records import Record, stable_hash
from rlvr_cli.verifiers.judgement import Judgement

Judge = Callable[[Record], Judgement]

VERIFIERS: dict[str, str] = {
    "chain": "every line of a chain of arithmetic must follow, and the answer from the last",
    "chain-answer": "the answer of a chain alone, whatever its derivation",
    "choice": "one letter of a multiple choice, alone or with its option's text",
    "exact": "the same text, apart from white space around it",
    "gsm8k": "the number after ####, whatever its thousands separators, currency or trailing period",
    "math": "mathematical equality, by Math-Verify",
    "numeric": "the last number, within a tolerance",
    "regex": "the answer is a pattern that the whole final answer has to match",
}

_PLACES = {"chain-answer": ("chain", "judge_answer")}  # where a verifier is not `judge` in the file of its name


def load(name: str) -> Judge:
    """The verifier of this name, or the user's own of `module:function`. Raises UsageError."""
    if ":" in name:
        from rlvr_cli.verifiers.own import load_own

        return load_own(name)
    file, function = _PLACES.get(known(name), (name, "judge"))
    judge: Judge = getattr(importlib.import_module(f"rlvr_cli.verifiers.{file}"), function)
    return judge


def load_check(name: str) -> Callable[[Record], None]:
    """The check that a problem fits this verifier; a user's own takes any. Raises UsageError."""
    if ":" in name:
        return lambda record: None
    file, _ = _PLACES.get(known(name), (name, "judge"))
    check: Callable[[Record], None] = importlib.import_module(f"rlvr_cli.verifiers.{file}").check
    return check


def known(name: str) -> str:
    """The name itself, when there is such a verifier. Raises UsageError naming those there are."""
    if name not in VERIFIERS:
        raise UsageError(f"no verifier {name!r}; there are {', '.join(VERIFIERS)}, and module:function for your own")
    return name


def version(name: str) -> str:
    """What judged: this package's version, with Math-Verify's where it does the work; a user's module's own."""
    if ":" in name:
        from rlvr_cli.verifiers.own import own_version

        return own_version(name)
    ours = f"rlvr {rlvr_cli.__version__}"
    return f"{ours}, math-verify {metadata.version('math-verify')}" if name == "math" else ours


def code_digest(name: str) -> str:
    """What a verdict of this verifier depends on beside the record: its version, and the file of a user's own.

    Raises UsageError for an unknown name.
    """
    load(name)
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None) if ":" in name else None
    return stable_hash(version(name), digest_files([Path(file)]) if file else None)
