"""What `rlvr verify` tells of the records that went by: counts, accuracy, speed, what changed, what looks wrong."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rlvr_cli.commands.run import Run, counted
from rlvr_cli.records import CHOICES, Record
from rlvr_cli.stages.verify import Slowest
from rlvr_cli.training.advantages import SIGNALS, group_signal

SLOW = 1.0  # seconds of judging from which on a record is named
PLACES = 3  # named of a kind


@dataclass
class Tally:
    """Counts records as they go by; one group's rewards are held at a time."""

    verdicts: Counter[str] = field(default_factory=Counter)
    verifiers: dict[str, Counter[str]] = field(default_factory=dict)
    signals: Counter[str] = field(default_factory=Counter)
    short_groups: int = 0
    slowest: Slowest = field(default_factory=lambda: Slowest(PLACES))
    _first: dict[str, str] = field(default_factory=dict)  # of the verdicts to warn of: where and why
    _began: float = field(default_factory=time.monotonic)
    _group: str | None = None
    _planned: int = 0
    _rewards: list[float | None] = field(default_factory=list)

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the records on and count them; a group is consecutive records with one `group_id`."""
        for record in records:
            verdict, detail = record["verdict"], record["verifier_detail"]
            self.verdicts[verdict] += 1
            name = detail["verifier"]
            if name not in self.verifiers:
                self.verifiers[name] = Counter()
            self.verifiers[name][verdict] += 1
            group = record.get("group_id")
            if group != self._group:
                self._close_group()
                self._group = group
                self._planned = record.get("group_size", 0)
            if verdict in ("error", "timeout") and verdict not in self._first:
                self._first[verdict] = f"{record.where}: {detail.get('reason', 'no reason given')}"
            if group is not None:
                self._rewards.append(record.get("reward"))
            yield record
        self._close_group()

    def _close_group(self) -> None:
        if self._rewards:
            self.signals[group_signal(self._rewards)] += 1
            self.short_groups += len(self._rewards) < self._planned
        self._rewards = []

    def report(self, run: Run) -> None:
        """The figures for `--metrics`, the closing lines and the warnings."""
        total, speed = self.verdicts.total(), self._speed()
        slow = self.slowest.over(SLOW)
        run.figures(
            accuracy=_accuracy(self.verdicts),
            **{f"verdict_{verdict}": self.verdicts[verdict] for verdict in CHOICES["verdict"]},
            verifiers={name: dict(verdicts) for name, verdicts in self.verifiers.items()},
            records_per_second=speed,
            slowest=[{"where": where, "verifier": name, "seconds": seconds} for seconds, where, name in slow],
            groups=self.signals.total(),
            **{f"groups_{signal}": self.signals[signal] for signal in SIGNALS},
        )
        text = f"{total} records" + _told(self.verdicts)
        if speed is not None:
            text += f"; {speed:,.0f} records/s"
        run.say(text + self._told_groups())
        if len(self.verifiers) > 1:
            for name, verdicts in self.verifiers.items():
                run.say(f"{name}: {counted(verdicts.total(), 'record')}{_told(verdicts)}")
        if slow:
            named = ", ".join(f"{where} ({name}) {seconds:.1f} s" for seconds, where, name in slow)
            run.say(f"slowest: {named}")
        if first := self._first.get("timeout"):
            run.warn(f"{counted(self.verdicts['timeout'], 'record')} could not be judged in time; the first: {first}")
        if first := self._first.get("error"):
            run.warn(f"{self.verdicts['error']} records could not be judged; the first: {first}")
        # a resumed run sees the end of the group that it was interrupted in
        if self.short_groups > (run.already > 0):
            run.warn(f"{self.short_groups} groups are smaller than their group_size; is the input whole?")

    def _speed(self) -> float | None:
        seconds = time.monotonic() - self._began
        return self.verdicts.total() / seconds if self.verdicts and seconds > 0 else None

    def _told_groups(self) -> str:
        groups = self.signals.total()
        if not groups:
            return ""
        shares = [f"{self.signals[name] / groups:.0%} {name.replace('_', ' ')}" for name in ("all_wrong", "all_right")]
        dull = 1 - self.signals["mixed"] / groups
        return f"; {dull:.0%} of {groups} groups have no signal ({', '.join(shares)})"


def _accuracy(verdicts: Counter[str]) -> float | None:
    """The share of correct records among those that could be judged."""
    judged = verdicts.total() - verdicts["error"]
    return verdicts["correct"] / judged if judged else None


def _told(verdicts: Counter[str]) -> str:
    counts = ", ".join(f"{verdicts[name]} {name}" for name in CHOICES["verdict"] if verdicts[name])
    accuracy = _accuracy(verdicts)
    return (f": {counts}" if counts else "") + ("" if accuracy is None else f"; accuracy {accuracy:.3f}")


@dataclass
class Comparison:
    """What a second judgement changed: `before` sees what goes into the stage, `after` what comes out."""

    compared: int = 0
    rewards: int = 0  # changed while the verdict stayed
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _places: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _earlier: deque[tuple[Any, Any]] = field(default_factory=deque)  # of records within the stage

    def before(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the records on and keep their verdicts."""
        for record in records:
            self._earlier.append((record.get("verdict"), record.get("reward")))
            yield record

    def after(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the same records on, judged again, and compare."""
        for record in records:
            verdict, reward = self._earlier.popleft()
            if verdict is not None:
                self.compared += 1
                if verdict != record["verdict"]:
                    change = (str(verdict), record["verdict"])
                    self.changes[change] += 1
                    places = self._places.setdefault(change, [])
                    if len(places) < PLACES:
                        places.append(record.where)
                elif reward != record.get("reward"):
                    self.rewards += 1
            yield record

    def report(self, run: Run) -> None:
        """The figures for `--metrics`, and a line for each kind of change."""
        changed = self.changes.total()
        run.figures(
            compared=self.compared,
            changed_verdicts=changed,
            changed_rewards=self.rewards,
            changes={f"{old} -> {new}": count for (old, new), count in self.changes.most_common()},
        )
        rewards = f", and {counted(self.rewards, 'reward')} of the same verdict" if self.rewards else ""
        run.say(f"{changed} of {counted(self.compared, 'earlier verdict')} changed{rewards}")
        for (old, new), count in self.changes.most_common():
            places = ", ".join(self._places[old, new])
            run.say(f"  {old} -> {new}: {count} ({places}{', ...' if count > PLACES else ''})")
