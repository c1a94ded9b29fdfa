"""A child that answers one question is gone whatever happens to its parent meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from gputune.host import child


def left() -> list[psutil.Process]:
    return [one for one in psutil.Process().children(recursive=True) if "gone" in one.cmdline()]


def test_an_interrupt_while_it_is_started_is_raised_once_it_is_known_and_leaves_nothing(monkeypatch):
    start = subprocess.Popen

    def interrupted(*arguments, **options):
        started = start(*arguments, **options)
        signal.raise_signal(signal.SIGINT)  # as it comes between the fork and the return
        return started

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        child.ask([sys.executable, "-c", "import time; time.sleep(60)", "gone"], {}, 30.0)
    assert not left()
    assert signal.getsignal(signal.SIGINT) is handler
