"""`rlvr verify`: options in, streams opened, what was judged told."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import typer

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, private_stdout
from rlvr_cli.records import CHOICES, Record, problem_id, stable_hash
from rlvr_cli.stages.verify import check_rollout_to_judge
from rlvr_cli.stages.verify import verify as stage
from rlvr_cli.streams.outputs import Unit
from rlvr_cli.training.advantages import SIGNALS, group_signal
from rlvr_cli.verifiers import VERIFIERS, code_digest


def _identity(record: Record) -> str:
    return str(record.get("rollout_id") or stable_hash(problem_id(record), record.get("completion")))


UNIT = Unit(identity=_identity, size=lambda record: 1)


@with_io()
def verify(
    io: IO,
    verifier: Annotated[
        str | None, opt("--verifier", help="judge all records with this one, or with your own module:function")
    ] = None,
    list_verifiers: Annotated[bool, opt("--list", help="list the verifiers and exit", env=False)] = False,
) -> None:
    """Judge each completion against its problem's answer: adds verdict, reward, extracted, verifier_detail."""
    if list_verifiers:
        width = max(map(len, VERIFIERS))
        typer.echo("\n".join(f"{name:{width}}  {what}" for name, what in VERIFIERS.items()))
        return
    with private_stdout():  # what a user's module prints when it is imported is no record
        code = code_digest(verifier) if verifier is not None else None
    with Run("verify", io, settings={"verifier": verifier, "code": code}) as run:
        records = run.read(partial(check_rollout_to_judge, verifier=verifier), unit=UNIT)
        tally = Tally()
        run.write(tally.count(stage(records, verifier)), unit=UNIT)
        tally.report(run)


@dataclass
class Tally:
    """What the closing summary tells of the records that went by; one group's rewards are held at a time."""

    verdicts: Counter[str] = field(default_factory=Counter)
    signals: Counter[str] = field(default_factory=Counter)
    short_groups: int = 0
    first_error: str | None = None
    _group: str | None = None
    _planned: int = 0
    _rewards: list[float | None] = field(default_factory=list)

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        """Pass the records on and count them; a group is consecutive records with one `group_id`."""
        for record in records:
            self.verdicts[record["verdict"]] += 1
            if record.get("group_id") != self._group:
                self._close_group()
                self._group = record.get("group_id")
                self._planned = record.get("group_size", 0)
            if record["verdict"] == "error" and self.first_error is None:
                self.first_error = f"{record.where}: {record['verifier_detail'].get('reason', 'no reason given')}"
            if self._group is not None:
                self._rewards.append(record.get("reward"))
            yield record
        self._close_group()

    def _close_group(self) -> None:
        if self._rewards:
            self.signals[group_signal(self._rewards)] += 1
            self.short_groups += len(self._rewards) < self._planned
        self._rewards = []

    def report(self, run: Run) -> None:
        """The figures for `--metrics` and the closing line."""
        total = self.verdicts.total()
        judged = total - self.verdicts["error"]
        accuracy = self.verdicts["correct"] / judged if judged else None
        run.figures(
            accuracy=accuracy,
            **{f"verdict_{verdict}": self.verdicts[verdict] for verdict in CHOICES["verdict"]},
            groups=self.signals.total(),
            **{f"groups_{signal}": self.signals[signal] for signal in SIGNALS},
        )
        counts = ", ".join(f"{self.verdicts[name]} {name}" for name in CHOICES["verdict"] if self.verdicts[name])
        text = f"{total} records" + (f": {counts}" if counts else "")
        if accuracy is not None:
            text += f"; accuracy {accuracy:.3f}"
        groups = self.signals.total()
        if groups:
            shares = [
                f"{self.signals[name] / groups:.0%} {name.replace('_', ' ')}" for name in ("all_wrong", "all_right")
            ]
            dull = 1 - self.signals["mixed"] / groups
            text += f"; {dull:.0%} of {groups} groups have no signal ({', '.join(shares)})"
        run.say(text)
        if self.first_error is not None:
            run.warn(f"{self.verdicts['error']} records could not be judged; the first: {self.first_error}")
        # a resumed run sees the end of the group that it was interrupted in
        if self.short_groups > (run.already > 0):
            run.warn(f"{self.short_groups} groups are smaller than their group_size; is the input whole?")
