"""`rlvr verify`: options in, streams opened, what was judged told."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from rlvr_cli.commands.options import IO, opt, with_io
from rlvr_cli.commands.run import Run, counted, private_stdout
from rlvr_cli.commands.verify_summary import Comparison, Tally
from rlvr_cli.errors import UsageError
from rlvr_cli.records import Record, problem_id, stable_hash
from rlvr_cli.stages.verify import check_rollout_to_judge
from rlvr_cli.stages.verify import verify as stage
from rlvr_cli.streams.jsonl import dumps
from rlvr_cli.streams.outputs import FileOutput, Unit, format_of
from rlvr_cli.verifiers import VERIFIERS, YOUR_OWN, code_digest
from rlvr_cli.verifiers.audit import Audit
from rlvr_cli.verifiers.pool import Settings
from rlvr_cli.verifiers.sandbox.options import Options


def _identity(record: Record) -> str:
    return str(record.get("rollout_id") or stable_hash(problem_id(record), record.get("completion")))


UNIT = Unit(identity=_identity, size=lambda record: 1)


@with_io()
def verify(
    io: IO,
    verifier: Annotated[
        str | None,
        opt("--verifier", help="judge all records with this one, with your own module:function or command:PROGRAM"),
    ] = None,
    workers: Annotated[int | None, opt("--workers", help="processes that judge; by default one a core")] = None,
    deadline: Annotated[float, opt("--deadline", help="seconds for one record, then its verdict is timeout")] = 10.0,
    memory: Annotated[int, opt("--memory", help="MiB of memory that one worker may have")] = 2048,
    code_timeout: Annotated[
        float, opt("--code-timeout", help="verifier code: seconds for one program and all of its tests")
    ] = Options.seconds,
    code_memory: Annotated[int, opt("--code-memory", help="verifier code: MiB for one program")] = Options.memory,
    code_output: Annotated[
        int, opt("--code-output", help="verifier code: bytes that a program may print in one test")
    ] = Options.output,
    unsafe_no_sandbox: Annotated[
        bool,
        opt("--unsafe-no-sandbox", help="verifier code: run programs of a policy without any protection", env=False),
    ] = False,
    compare: Annotated[
        bool, opt("--compare", help="say which earlier verdicts and rewards changed", env=False)
    ] = False,
    audit: Annotated[
        str | None,
        opt("--audit", help="file for problems whose completions agree, but not with the answer", env=False),
    ] = None,
    list_verifiers: Annotated[bool, opt("--list", help="list the verifiers and exit", env=False)] = False,
) -> None:
    """Judge each completion against its problem's answer: adds verdict, reward, extracted, verifier_detail.

    A record that has a verdict is judged again.
    """
    if list_verifiers:
        listed = {**VERIFIERS, **YOUR_OWN}
        width = max(map(len, listed))
        typer.echo("\n".join(f"{name:{width}}  {what}" for name, what in listed.items()))
        return
    code = Options(seconds=code_timeout, memory=code_memory, output=code_output, sandbox=not unsafe_no_sandbox)
    settings = _checked(Settings(workers=workers, deadline=deadline, memory=memory, code=code))
    with private_stdout():  # what a user's module prints when it is imported is no record
        digest = code_digest(verifier) if verifier is not None else None
    # the number of workers changes no verdict
    bounds = {"deadline": deadline, "memory": memory, "programs": asdict(code)}
    run = Run("verify", io, settings={"verifier": verifier, "code": digest, **bounds}, writes={"--audit": audit})
    with run, _written_audit(run, audit) as auditor:
        records = run.read(partial(check_rollout_to_judge, verifier=verifier), unit=UNIT)
        comparison = Comparison() if compare else None
        if comparison is not None:
            records = comparison.before(records)
        tally = Tally()
        scored = tally.count(stage(records, verifier, settings, tally.slowest))
        if comparison is not None:
            scored = comparison.after(scored)
        if auditor is not None:
            scored = auditor.count(scored)
        run.write(scored, unit=UNIT)
        tally.report(run)
        if comparison is not None:
            comparison.report(run)


def _checked(settings: Settings) -> Settings:
    """The settings, if they make sense. Raises UsageError."""
    code = settings.code
    if settings.workers is not None and settings.workers < 1:
        raise UsageError(f"--workers is {settings.workers}, expected 1 or more; leave it out for one a core")
    for option, value in (("--deadline", settings.deadline), ("--code-timeout", code.seconds)):
        if not 0 < value <= 86400:
            raise UsageError(f"{option} is {value:g}, expected seconds, more than 0 and at most a day")
    for option, value in (("--memory", settings.memory), ("--code-memory", code.memory)):
        if not 64 <= value < 2**40:
            raise UsageError(f"{option} is {value:g}, expected 64 MiB or more")
    if code.output < 1:
        raise UsageError(f"--code-output is {code.output}, expected 1 or more")
    return settings


@contextmanager
def _written_audit(run: Run, name: str | None) -> Iterator[Audit | None]:
    """What fills the file of suspects; it is written whole when all went well, or not at all."""
    if name is None:
        yield None
        return
    output = FileOutput(name, format_of(name), force=True)
    try:
        output.start("audit", "")
        audit = Audit()
        yield audit
        rows = audit.suspects()
        output.write([dumps(row) + b"\n" for row in rows])
        output.commit()
    finally:
        output.unfinished = False
        output.close()
    run.figures(suspects=len(rows))
    if rows:
        run.say(f"{counted(len(rows), 'problem')} with a suspect answer; see {name}")
    if run.already:
        run.warn(f"{name} is about the records judged now, not the {run.already} that were there already")
