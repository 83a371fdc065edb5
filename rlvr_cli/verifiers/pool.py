"""The worker pool: judging that may hang, crash or eat memory, in processes that can be killed.

Tasks go to workers in chunks, and each judgement comes back as it is made, so that the pool always knows which record
a worker is at. That record alone pays:
- over the deadline: the worker is killed, the verdict is `timeout`;
- out of memory, or dead: `timeout` too, since it was the policy's text that did it, with the reason. Unless it was the
  worker's first record it gets a second try in a fresh process, so that no record pays for what others left behind.
The rest of the chunk goes back to the head of the queue. Where judging is quick as a rule, a worker that needs long for
one record is set aside: another takes its place and the rest of its chunk, it runs with a lower priority and ends with
that record, so hung answers do not keep the others waiting.

Workers start when there is work for them, and are renewed after so many records, for what libraries never give back.
There are no signals, no threads and no waiting for one worker in the parent.
"""

import os
import selectors
import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rlvr_cli.errors import UserError
from rlvr_cli.records import COLUMNS, Record
from rlvr_cli.verifiers.judgement import Judgement, timeout
from rlvr_cli.verifiers.process import NoiseError, Process
from rlvr_cli.verifiers.sandbox.options import Options
from rlvr_cli.verifiers.worker import Sent

RECYCLED = 5000  # records that one process judges
CHUNK_SECONDS = 0.05  # about how long a chunk takes
LARGEST_CHUNK = 64
SLOW = 1.0  # seconds at one record after which a worker is set aside
QUICK = 0.1  # seconds a record, on average, up to which judging is quick as a rule
STARTING = 120.0  # seconds that a process has to import what it needs
TICK = 0.02  # seconds between two looks at the clock
STILLBORN = 3  # processes in a row that end before they judge anything: the fault is not in a record
PATIENCE = 0.2  # seconds that a worker which closed its socket has, to say by its exit code how it ended
OVERSLEPT = "was killed by SIGALRM"  # by the worker's own alarm
LEAVING = 2.0  # seconds that workers have to end by themselves when all is done

_UNSENT = {name for name, kind in COLUMNS.items() if kind in ("ids", "logprobs")}


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """How judging is bounded."""

    workers: int | None = None  # None: one for each core
    deadline: float = 10.0  # seconds for one record
    memory: int = 2048  # MiB for one worker
    code: Options = field(default_factory=Options)  # of `code`; its seconds come on top of the deadline


@dataclass(eq=False, slots=True)
class Task:
    """One record to judge; judged when `judgement` is there."""

    name: str  # of the verifier
    record: Record
    deadline: float  # seconds
    options: Any = None  # what the verifier is called with beside the record, if anything
    judgement: Judgement | None = None
    seconds: float = 0.0
    tried: bool = False

    def sent(self) -> Sent:
        """What a worker gets. Token ids and logprobs are for people's own judges only; ours look at texts."""
        columns = dict(self.record)
        if ":" not in self.name:
            for name in _UNSENT:
                columns.pop(name, None)
        return self.name, self.options, self.deadline, self.record.where, columns


@dataclass(eq=False, slots=True)
class _Worker:
    process: Process
    since: float  # when it began what it is at
    state: str = "starting"  # or idle, judging, loading
    tasks: deque[Task] = field(default_factory=deque)  # its chunk; it is at the first
    judged: int = 0
    aside: bool = False
    owed: int = 0  # EVENT_WRITE while its socket takes no more


class Pool:
    """Worker processes, as a context manager: none is left when it is over, whatever ended it."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.workers or cores()
        self._memory = settings.memory
        self._queue: deque[Task] = deque()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._looked = 0.0
        self._usual = 0.0  # seconds a record, a moving average
        self._stillborn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leaving = [worker for worker in self._workers if worker.state in ("idle", "leaving") and kind is None]
        for worker in leaving:
            worker.process.hang_up()
        until = time.monotonic() + LEAVING
        for worker in leaving:
            worker.process.wait(until - time.monotonic())
        for worker in self._workers:
            worker.process.end()
        self._workers.clear()
        self._selector.close()

    @property
    def full(self) -> bool:
        """Whether there is work enough in the queue: a chunk for each worker, beside the one that it has."""
        return len(self._queue) >= self._most * (self._chunk if self._usual else LARGEST_CHUNK)

    @property
    def _chunk(self) -> int:
        return max(1, min(LARGEST_CHUNK, int(CHUNK_SECONDS / self._usual))) if self._usual else 1

    def submit(self, task: Task) -> None:
        """Have a task judged, some time during later calls of `step`."""
        self._queue.append(task)

    def step(self, *, wait: bool) -> None:
        """Hand out work and take what has come; with `wait`, let a moment pass where nothing has.

        Raises UserError for what is no record's fault: a verifier that cannot be loaded, processes that do not start.
        """
        self._hand_out()
        for key, events in self._selector.select(TICK if wait else 0):
            worker: _Worker = key.data
            if events & selectors.EVENT_WRITE and worker in self._workers:
                self._flush(worker)
            if events & selectors.EVENT_READ and worker in self._workers:
                self._take(worker)
        now = time.monotonic()
        if now - self._looked >= TICK:
            self._looked = now
            for worker in list(self._workers):
                self._look_at(worker, now)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give idle workers a chunk each; start workers while there is more to do than they are."""
        while self._queue:
            worker = next((worker for worker in self._workers if worker.state == "idle"), None)
            if worker is not None:
                share = -(-len(self._queue) // self._most)
                self._give(worker, [self._queue.popleft() for _ in range(min(self._chunk, share))])
            elif self._room() and sum(worker.state == "starting" for worker in self._workers) < len(self._queue):
                self._start()
            else:
                return

    def _room(self) -> bool:
        """Whether one more may start: so many that are not set aside, and twice as many in all."""
        active = sum(not worker.aside for worker in self._workers)
        return active < self._most and len(self._workers) < 2 * self._most

    def _start(self) -> _Worker:
        try:
            worker = _Worker(Process(self._memory), time.monotonic())
        except OSError as bad:
            there = f"{len(self._workers)} of {self._most}"
            raise UserError(f"no process can be started, beside {there}: {bad}; lower --workers") from bad
        self._workers.append(worker)
        self._selector.register(worker.process.socket, selectors.EVENT_READ, worker)
        self._flush(worker)
        return worker

    def _give(self, worker: _Worker, tasks: list[Task]) -> None:
        worker.tasks.extend(tasks)
        worker.process.send([task.sent() for task in tasks])
        if worker.state == "idle":
            worker.state, worker.since = "judging", time.monotonic()
        self._flush(worker)

    def _flush(self, worker: _Worker) -> None:
        owed = selectors.EVENT_WRITE if worker.process.flush() else 0
        if worker.owed != owed:
            worker.owed = owed
            self._selector.modify(worker.process.socket, selectors.EVENT_READ | owed, worker)

    def _take(self, worker: _Worker) -> None:
        """What a worker has said by now."""
        try:
            for message in worker.process.messages():
                self._heard(worker, message)
                if worker not in self._workers:
                    return
        except EOFError:
            self._lost(worker)
        except NoiseError:
            self._lost(worker, "wrote to the pool's socket")

    def _heard(self, worker: _Worker, message: list[Any]) -> None:
        match message:
            case ["ready" | "judging"]:
                worker.state = "judging" if worker.tasks else "idle"
            case ["loading"]:
                worker.state = "loading"
            case ["memory"]:
                self._lost(worker, f"ran out of the {self._memory} MiB of memory that it may have")
                return
            case ["stop", str(text)]:
                raise UserError(text)
            case ["judged", float(seconds), str(verdict), reward, extracted, dict(detail)] if worker.tasks:
                self._judged(worker, seconds, Judgement(verdict, reward, extracted, detail))
            case _:
                raise NoiseError
        worker.since = time.monotonic()

    def _judged(self, worker: _Worker, seconds: float, judgement: Judgement) -> None:
        task = worker.tasks.popleft()
        if seconds > task.deadline:  # the pool was not there to kill it: the same verdict
            judgement = timeout(None, task.deadline)
        self._done(task, judgement, seconds)
        self._stillborn = 0
        worker.judged += 1
        if worker.aside:
            self._end(worker)
        elif not worker.tasks:
            worker.state = "idle"
            if worker.judged >= RECYCLED and not task.name.startswith("command:"):  # a program is its owner's to renew
                worker.state = "leaving"
                worker.process.hang_up()

    def _done(self, task: Task, judgement: Judgement, seconds: float) -> None:
        task.judgement, task.seconds = judgement, seconds
        weight = 0.05 if self._usual else 1.0
        self._usual += weight * (min(seconds, SLOW) - self._usual)

    def _look_at(self, worker: _Worker, now: float) -> None:
        """Kill a worker that is over its time; set aside one that is slow; find one that has gone without a word."""
        taken = now - worker.since
        judging = worker.state == "judging"
        if worker.process.gone() or (judging and taken > worker.tasks[0].deadline):
            self._take(worker)  # its last words may have come meanwhile
            if worker not in self._workers:
                return
            if worker.process.gone():
                self._lost(worker)
            elif worker.state == "judging" and worker.since + worker.tasks[0].deadline < now:
                task = worker.tasks.popleft()
                self._done(task, timeout(None, task.deadline), taken)
                self._end(worker)
        elif judging and taken > SLOW and not worker.aside and 0 < self._usual <= QUICK:
            worker.aside = True
            worker.process.slow_down()
            while len(worker.tasks) > 1:
                self._queue.appendleft(worker.tasks.pop())
        elif worker.state in ("starting", "loading") and taken > STARTING:
            self._lost(worker, f"needed longer than {STARTING:g} s to begin")
        elif worker.state == "leaving" and taken > LEAVING:
            self._end(worker)

    def _end(self, worker: _Worker, patience: float = 0.0) -> str:
        """Be rid of a worker; what it had not judged goes back. Returns how it ended."""
        self._queue.extendleft(reversed(worker.tasks))
        worker.tasks.clear()
        self._workers.remove(worker)
        self._selector.unregister(worker.process.socket)
        return worker.process.end(patience)

    def _lost(self, worker: _Worker, why: str | None = None) -> None:
        """A worker has died, or has to, through the record that it is at, if it is at one."""
        task = worker.tasks.popleft() if worker.state == "judging" else None
        seconds = time.monotonic() - worker.since
        ended = self._end(worker, patience=PATIENCE if why is None else 0.0)
        reason = f"the judging process {why or ended}"
        if task is None:
            self._stillborn += worker.state in ("starting", "loading")
            if self._stillborn >= STILLBORN:
                raise UserError(f"{reason}, {STILLBORN} times before it judged anything; --memory may be too little")
        elif ended == OVERSLEPT:  # the pool was not there to kill it: the same verdict
            self._done(task, timeout(None, task.deadline), seconds)
        elif task.tried or not worker.judged:
            self._done(task, Judgement("timeout", 0.0, None, {"reason": reason}), seconds)
        else:
            task.tried = True
            self._give(self._start(), [task])
