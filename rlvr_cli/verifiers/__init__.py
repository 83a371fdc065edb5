"""Verifiers: each judges one completion against its problem's answer. One file a verifier, imported on use.

A verifier's file has `check(record)`, which raises RecordError for a problem that it cannot judge, and `judge(record)`,
which returns a Judgement, in a worker process that may be killed. It may have `quick(record)`, which is called first,
in the parent: the Judgement where that is certain and cheap whatever the text, else None. `module:function` names a
user's own, `command:PROGRAM` a program.
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

PROGRAM = "command:"  # before the words of a program that judges

VERIFIERS: dict[str, str] = {
    "boxed": "the last \\boxed{...} as text: spacing, sizes and wrapping do not matter",
    "chain": "every line of a chain of arithmetic must follow, and the answer from the last",
    "chain-answer": "the answer of a chain alone, whatever its derivation",
    "choice": "one letter of a multiple choice, alone or with its option's text (column choices: these texts)",
    "code": "a Python program, against assertions or inputs and outputs, in a sandbox",
    "exact": "the same text, apart from white space around it",
    "gsm8k": "the number after ####, whatever its thousands separators, currency or trailing period",
    "json": "a JSON value, exactly, or one that fits a schema (extra json-schema)",
    "math": "mathematical equality, by Math-Verify",
    "numeric": "one number, units converted, within a tolerance (columns rel_tol, abs_tol)",
    "reasoning-gym": "the library's own scorers, with partial credit (columns metadata, min_score; an extra)",
    "regex": "the answer is a pattern that the whole final answer has to match",
    "sequence": "a list of items in order",
    "set": "a list of items in any order, each counted once",
    "text": "the same words: case, articles, and punctuation around words aside; or one of a JSON list of texts",
}

# where a verifier is not `judge` in the file of its name; beside `judge_answer` there may be a `quick_answer`
_PLACES = {
    "chain-answer": ("chain", "judge_answer"),
    "json": ("json_value", "judge"),
    "reasoning-gym": ("reasoning_gym", "judge"),
    "set": ("sets", "judge"),
}
_ENGINES = {"json": "jsonschema", "math": "math-verify", "reasoning-gym": "reasoning-gym"}  # what does the work

YOUR_OWN: dict[str, str] = {
    "command:PROGRAM": "any program, with its arguments: a record a line on its standard input, a reward a line back",
    "module:function": "your own Python: called with a record, returns a reward",
}


def load(name: str) -> Judge:
    """The verifier of this name, or the user's own. Raises UsageError."""
    if name.startswith(PROGRAM):
        from rlvr_cli.verifiers.command import load_program

        return load_program(name)
    if ":" in name:
        from rlvr_cli.verifiers.own import load_own

        return load_own(name)
    file, function = _PLACES.get(known(name), (name, "judge"))
    judge: Judge = getattr(importlib.import_module(f"rlvr_cli.verifiers.{file}"), function)
    return judge


def load_quick(name: str) -> Callable[[Record], Judgement | None] | None:
    """What gives the verdicts that are certain and cheap, where the verifier has that. Raises UsageError."""
    if ":" in name:
        load(name)  # a name that means nothing is found before a worker is started
        return None
    file, function = _PLACES.get(known(name), (name, "judge"))
    module = importlib.import_module(f"rlvr_cli.verifiers.{file}")
    return getattr(module, function.replace("judge", "quick"), None)


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
        raise UsageError(
            f"no verifier {name!r}; there are {', '.join(VERIFIERS)}, and {' and '.join(YOUR_OWN)} for your own"
        )
    return name


def version(name: str) -> str:
    """What judged: this package's version, with that of the library that does the work; a user's module's own."""
    if name.startswith(PROGRAM):
        from rlvr_cli.verifiers.command import program_version

        return program_version(name)
    if ":" in name:
        from rlvr_cli.verifiers.own import own_version

        return own_version(name)
    ours = f"rlvr {rlvr_cli.__version__}"
    try:
        return f"{ours}, {_ENGINES[name]} {metadata.version(_ENGINES[name])}" if name in _ENGINES else ours
    except metadata.PackageNotFoundError:  # an extra; the check says so where it is needed
        return ours


def code_digest(name: str) -> str:
    """What a verdict of this verifier depends on beside the record: its version, and the files of a user's own.

    Raises UsageError for an unknown name.
    """
    load(name)
    if name.startswith(PROGRAM):
        return version(name)
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None) if ":" in name else None
    return stable_hash(version(name), digest_files([Path(file)]) if file else None)
