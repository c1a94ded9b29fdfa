"""Code that is not gputune's may not take for ever."""

import signal
import time

import pytest

from gputune.benches.loading.stream import OutOfPatience, within


def test_what_ends_in_time_is_left_alone():
    before = signal.getsignal(signal.SIGALRM)
    with within(5):
        pass
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.slow
def test_what_does_not_is_interrupted_whatever_it_catches():
    def stubborn():
        try:
            time.sleep(30)
        except Exception:
            time.sleep(30)

    started = time.monotonic()
    with pytest.raises(OutOfPatience), within(0.2):
        stubborn()
    assert time.monotonic() - started < 25
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
