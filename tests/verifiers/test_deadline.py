"""The time limit."""

import signal
import threading
import time

import pytest

from rlvr_cli.errors import UsageError
from rlvr_cli.verifiers.deadline import DeadlineError, deadline


def test_work_that_hangs_is_stopped():
    with pytest.raises(DeadlineError), deadline(0.05):
        time.sleep(5)


def test_work_that_swallows_the_first_alarm_is_stopped_too():
    with pytest.raises(DeadlineError), deadline(0.05):
        try:
            time.sleep(5)
        except BaseException:
            time.sleep(5)


def test_nothing_is_left_behind():
    with deadline(0.05):
        pass
    time.sleep(0.1)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_the_callers_own_timer_still_rings():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with deadline(5):
            time.sleep(0.1)
        time.sleep(0.05)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == [signal.SIGALRM]


def test_outside_the_main_thread_it_says_so():
    caught = []

    def work():
        try:
            with deadline(1):
                pass
        except UsageError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread only" in caught[0]
