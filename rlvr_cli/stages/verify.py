"""Rollouts in, scored rollouts out: the same records in the same order, each with its verdict and reward.

A verdict that its verifier has at once (`quick`) is taken here; all else is judged in worker processes, by
verifiers/pool.py. A record that takes long keeps those behind it waiting, in order. They go on being read and judged
meanwhile: the few that there is memory for are held, and the others wait in a temporary file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappush, heappushpop

from rlvr_cli.errors import RecordError, UsageError, UserError
from rlvr_cli.records import COLUMNS, Record, check_columns
from rlvr_cli.streams.waiting import Line
from rlvr_cli.verifiers import PROGRAM, known, load_check, load_quick, version
from rlvr_cli.verifiers.judgement import Judgement, error
from rlvr_cli.verifiers.pool import Pool, Settings, Task

ADDED = ("verdict", "reward", "extracted", "verifier_detail")
FAILURES = 20  # records in a row that a program did not judge, after which the run ends

_LISTS = {name for name, kind in COLUMNS.items() if kind in ("ids", "logprobs")}


def verify(
    records: Iterable[Record],
    verifier: str | None = None,
    settings: Settings | None = None,
    slowest: "Slowest | None" = None,
) -> Iterator[Record]:
    """Judge each record with the verifier that it names, or with `verifier` for all of them.

    Adds `verdict`, `reward` (absent where the judge failed), `extracted` (absent where nothing was) and
    `verifier_detail`; those of an earlier judgement go. The `verifier` column stays as it is: the detail names the one
    that judged. An exception in a verifier is verdict `error`. Raises UserError for a program that judges nothing.
    """
    settings = settings or Settings()
    finish = _Finish(slowest or Slowest())
    trouble: list[UserError] = []
    with Pool(settings) as pool, Line(finish.ready) as line:
        for record in _readable(records, trouble):
            name = _name(record, verifier)
            judgement = _at_once(record, name)
            if judgement is not None and not line:
                yield _scored(record, name, judgement)
                continue
            task = _task(name, record, settings, judgement)
            line.append(task, record)
            if judgement is None:
                pool.submit(task)
            pool.step(wait=False)
            yield from line.leaving()
            while pool.full or not line.has_room():
                pool.step(wait=True)
                yield from line.leaving()
        while line:
            pool.step(wait=True)
            yield from line.leaving()
    if trouble:
        raise trouble[0]


def _readable(records: Iterable[Record], trouble: list[UserError]) -> Iterator[Record]:
    """The records up to where reading fails: what was read before that is judged first."""
    try:
        yield from records
    except UserError as bad:
        trouble.append(bad)


def check_rollout_to_judge(record: Record, verifier: str | None = None) -> None:
    """Check that a record can be judged: it has a completion, and an answer that its verifier can compare with.

    Raises RecordError naming the place, the column and the remedy.
    """
    failed = record.get("finish_reason") == "error"  # such a rollout has nothing to judge
    earlier = Record({key: value for key, value in record.items() if key not in ADDED}, record.where)
    check_columns(earlier, required=[] if failed else ["completion"], remedy="run rlvr rollout on it first")
    check = _load_check(_name(record, verifier))
    for name in _LISTS:  # no verifier's check looks at them, and they are long
        earlier.pop(name, None)
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


def _at_once(record: Record, name: str) -> Judgement | None:
    """The judgement, where that takes no worker."""
    if record.get("finish_reason") == "error":
        return error("the engine gave no completion")
    quick = _load_quick(name)
    if quick is None:
        return None
    try:
        return quick(record)
    except UserError:
        raise
    except Exception as bad:
        return error(f"{type(bad).__name__}: {bad}")


def _task(name: str, record: Record, settings: Settings, judgement: Judgement | None) -> Task:
    if name != "code":
        return Task(name, record, settings.deadline, judgement=judgement)
    from rlvr_cli.verifiers.sandbox.probe import prepare

    options = prepare(settings.code)
    return Task(name, record, settings.deadline + options.seconds, options, judgement)


def _scored(record: Record, name: str, judgement: Judgement) -> Record:
    scored = Record(record, record.where)
    for column in ADDED:
        scored.pop(column, None)
    scored["verdict"] = judgement.verdict
    if judgement.reward is not None:
        scored["reward"] = judgement.reward
    if judgement.extracted is not None:
        scored["extracted"] = judgement.extracted
    scored["verifier_detail"] = {"verifier": name, "version": _version(name), **judgement.detail}
    return scored


@dataclass
class Slowest:
    """The records that took a worker longest, for the summary."""

    count: int = 3
    _found: list[tuple[float, str, str]] = field(default_factory=list)

    def note(self, task: Task) -> None:
        """One more was judged."""
        entry = (task.seconds, task.record.where, task.name)
        if len(self._found) < self.count:
            heappush(self._found, entry)
        elif entry > self._found[0]:
            heappushpop(self._found, entry)

    def over(self, seconds: float) -> list[tuple[float, str, str]]:
        """Those that took longer than this, the slowest first, each as (seconds, place, verifier)."""
        return sorted((entry for entry in self._found if entry[0] > seconds), reverse=True)


@dataclass
class _Finish:
    """Makes the scored record of a task."""

    slowest: Slowest
    failures: int = 0  # of a program, in a row

    def ready(self, task: Task) -> Record | None:
        """The record, once the task is judged. Raises UserError for a program that judges nothing."""
        judgement = task.judgement
        if judgement is None:
            return None
        self.slowest.note(task)
        if task.name.startswith(PROGRAM):
            self.failures = self.failures + 1 if judgement.verdict in ("error", "timeout") else 0
            if self.failures == FAILURES:
                reason = judgement.detail.get("reason", "no reason given")
                raise UserError(
                    f"{task.record.where}: {task.name} has judged none of the last {FAILURES} records; "
                    f"the last: {reason}"
                )
        return _scored(task.record, task.name, judgement)


_load_quick = lru_cache(maxsize=None)(load_quick)
_load_check = lru_cache(maxsize=None)(load_check)
_version = lru_cache(maxsize=None)(version)
