"""Whether others leave this machine's CPUs to the program that is measured, by the rule of the check machine_busy."""

import time
from collections import deque

from gputune.facts import busy
from gputune.facts.cpu import Cpu
from gputune.host import Host

WINDOW_SECONDS = 0.4
"""The least time over which it is told. In a shorter one the kernel's steps of 0.01 s are too coarse; in a longer one a
calm round counts as disturbed for what came before it."""
LOOK_SECONDS = 1.0
"""How long a look takes while a calm machine is waited for."""


class CalmWatch:
    def __init__(self, host: Host, cpu: Cpu, *, on_gpu: bool) -> None:
        self._host, self._cpu, self._on_gpu = host, cpu, on_gpu
        self._readings: deque[busy.Reading] = deque()
        self._most = 0.0

    def was_calm(self) -> bool:
        """Whether others left enough CPUs since the last call, or for `WINDOW_SECONDS` if that is longer. Calm where
        it cannot be told.
        """
        now = busy.read(self._host)
        if now is None:
            return True
        self._readings.append(now)
        while len(self._readings) > 2 and now.at - self._readings[1].at >= WINDOW_SECONDS:
            self._readings.popleft()
        return self.is_calm(busy.used_by_others(self._readings[0], now))

    def wait(self, seconds: float) -> None:
        """Wait for a calm machine, for at most so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.is_calm(busy.watched(self._host, LOOK_SECONDS)):
            pass

    def is_calm(self, others: float | None) -> bool:
        """Whether others who use so many CPUs leave enough; None if that is unknown."""
        if others is None or not busy.is_busy(self._cpu, others, on_gpu=self._on_gpu):
            return True
        self._most = max(self._most, others)
        return False

    def __str__(self) -> str:
        """The most that others used."""
        return f"others used up to {self._most:.2g} of {self._cpu.affinity_count} CPUs"
