"""A time limit for work that may hang: symbolic algebra, backtracking patterns.

By SIGALRM, so for the main thread of a process only. The alarm repeats, because a library that catches everything may
swallow the first one, and a timer that the caller had set is put back.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rlvr_cli.errors import UsageError

REPEAT = 0.5  # seconds between alarms after the first


class DeadlineError(BaseException):
    """Time is up. No Exception, so that a library's `except Exception` does not keep it."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise DeadlineError in the body when it takes longer than `seconds`."""
    if threading.current_thread() is not threading.main_thread():
        raise UsageError("this verifier keeps time by a signal and so works in the main thread only; use a process")

    def ring(number: int, frame: FrameType | None) -> None:
        raise DeadlineError(f"longer than {seconds:g} s")

    handler = signal.signal(signal.SIGALRM, ring)
    begun = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:  # an alarm of the caller that fell due meanwhile rings at once
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - begun), 1e-6), interval)
