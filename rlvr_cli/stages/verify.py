"""Rollouts in, scored rollouts out: the same records in the same order, each with its verdict and reward."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from rlvr_cli.errors import RecordError, UsageError, UserError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers import Judge, known, load, load_check, version
from rlvr_cli.verifiers.judgement import Judgement, error

ADDED = ("verdict", "reward", "extracted", "verifier_detail")


def verify(records: Iterable[Record], verifier: str | None = None) -> Iterator[Record]:
    """Judge each record with the verifier that it names, or with `verifier` for all of them.

    Adds `verdict`, `reward` (absent where the judge failed), `extracted` (absent where nothing was) and
    `verifier_detail`; those of an earlier judgement go. The `verifier` column stays as it is: the detail names the one
    that judged. An exception in a verifier is verdict `error`.
    """
    for record in records:
        name = _name(record, verifier)
        yield _scored(record, name, _judged(record, _load(name)))


def check_rollout_to_judge(record: Record, verifier: str | None = None) -> None:
    """Check that a record can be judged: it has a completion, and an answer that its verifier can compare with.

    Raises RecordError naming the place, the column and the remedy.
    """
    earlier = Record({key: value for key, value in record.items() if key not in ADDED}, record.where)
    failed = record.get("finish_reason") == "error"  # such a rollout has nothing to judge
    check_columns(earlier, required=[] if failed else ["completion"], remedy="run rlvr rollout on it first")
    check = _load_check(_name(record, verifier))
    check(earlier)


def _name(record: Record, verifier: str | None) -> str:
    """The name of the verifier that judges this record. Raises RecordError when the record names none that there is."""
    if verifier is not None:
        return verifier
    name = record.get("verifier")
    if not isinstance(name, str):
        raise RecordError(f"{record.where}: verifier is missing; name one with --verifier (--list shows them)")
    if ":" in name:  # data must not choose which code runs
        raise RecordError(f"{record.where}: verifier is {name!r}; your own code is named by --verifier {name} only")
    try:
        return known(name)
    except UsageError as unknown:
        raise RecordError(f"{record.where}: verifier: {unknown}") from unknown


def _judged(record: Record, judge: Judge) -> Judgement:
    if record.get("finish_reason") == "error":
        return error("the engine gave no completion")
    try:
        return judge(record)
    except UserError:
        raise
    except Exception as bad:
        return error(f"{type(bad).__name__}: {bad}")


def _scored(record: Record, name: str, judgement: Judgement) -> Record:
    columns = {
        "verdict": judgement.verdict,
        "reward": judgement.reward,
        "extracted": judgement.extracted,
        "verifier_detail": {"verifier": name, "version": _version(name), **judgement.detail},
    }
    scored = Record({key: value for key, value in record.items() if key not in ADDED}, record.where)
    scored.update((key, value) for key, value in columns.items() if value is not None)
    return scored


_load = lru_cache(maxsize=None)(load)
_load_check = lru_cache(maxsize=None)(load_check)
_version = lru_cache(maxsize=None)(version)
