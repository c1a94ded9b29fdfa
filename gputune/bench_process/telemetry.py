"""What the GPU does while it is measured, through NVML: clock, power, what throttles it, and who else uses it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import reduce
from operator import or_
from statistics import median
from typing import Any

from gputune.facts.health import clocks_event_reasons
from gputune.host import Host, Nvml, Unreadable

_SM_CLOCK = 1
_APART_SECONDS = 0.2
"""The processes are asked for no more often: the driver itself looks at their utilisation some times a second."""


class Telemetry:
    """Samples one GPU, by its NVML index. With None, or where NVML does not answer, there is nothing to sample."""

    def __init__(self, index: int | None, host: Host | None = None) -> None:
        self._index = index if index is not None else -1
        self._nvml: Nvml | None = None
        self._asked = -_APART_SECONDS
        self._newest: int | None = None
        """When the last known sample of utilisation was taken, by the driver's clock."""
        if index is not None:
            try:
                self._nvml = (host or Host()).nvml()
            except Unreadable:
                self._nvml = None

    def sample(self) -> dict[str, float]:
        """What there is now, without what cannot be read: sm_clock_mhz, power_watts, throttle_reasons, pcie_generation;
        and a few times a second

        - gpu_processes: compute processes on it, this one among them;
        - other_sm_percent: the highest utilisation of its SMs by another one since the last time.
        """
        if self._nvml is None:
            return {}
        found = {
            "sm_clock_mhz": self._ask("ClockInfo", _SM_CLOCK),
            "power_watts": self._ask("PowerUsage", scale=1e-3),
            "throttle_reasons": self._reasons(),
            "pcie_generation": self._ask("CurrPcieLinkGeneration"),
        }
        now = time.monotonic()
        if now - self._asked >= _APART_SECONDS:
            self._asked = now
            found |= {"gpu_processes": self._processes(), "other_sm_percent": self._others()}
        return {name: value for name, value in found.items() if value is not None}

    def _ask(self, name: str, *args: int, scale: float = 1.0) -> float | None:
        try:
            return float(self._nvml.device(self._index, name, *args)) * scale if self._nvml else None
        except Unreadable:
            return None

    def _reasons(self) -> float | None:
        """A bit mask."""
        try:
            return float(clocks_event_reasons(self._nvml, self._index)) if self._nvml else None
        except Unreadable:
            return None

    def _processes(self) -> float | None:
        """None also where there is none, not even this one: then a container hides them."""
        pids = {process["pid"] for kind in ("", "MPS") for process in self._listed(f"{kind}ComputeRunningProcesses")}
        return float(len(pids)) if pids else None

    def _others(self) -> float | None:
        """The first answer, which tells of before the measurement, only says how far the driver has come."""
        samples = self._listed("ProcessUtilization", self._newest or 0)
        since, first = self._newest or 0, self._newest is None
        self._newest = max([since, *(sample["timeStamp"] for sample in samples)])
        return None if first else other_sm_percent(samples, os.getpid(), since)

    def _listed(self, name: str, *args: int) -> Sequence[Any]:
        """What NVML lists; nothing where it does not answer, as it does where there is nothing to list."""
        try:
            return list(self._nvml.device(self._index, name, *args)) if self._nvml else []
        except Unreadable:
            return []


def other_sm_percent(samples: Sequence[Any], own: int, since: int) -> float | None:
    """The highest utilisation by a process other than `own` after `since`.

    None where `own` is not listed: a container has other process numbers than its host, and then nobody can be told apart.
    """
    new = [sample for sample in samples if sample["timeStamp"] > since]
    if own not in {sample["pid"] for sample in new}:
        return None
    return float(max((sample["smUtil"] for sample in new if sample["pid"] != own), default=0))


def summary(samples: list[dict[str, float]]) -> dict[str, float]:
    """Medians of clock and power, all throttle reasons that occurred, and the highest of the others."""
    found: dict[str, float] = {}
    for name in ("sm_clock_mhz", "power_watts"):
        values = [sample[name] for sample in samples if name in sample]
        if values:
            found[name] = float(round(median(values)))
    masks = [int(sample["throttle_reasons"]) for sample in samples if "throttle_reasons" in sample]
    if masks:
        found["throttle_reasons"] = float(reduce(or_, masks))
    for name in ("pcie_generation", "gpu_processes", "other_sm_percent"):
        values = [sample[name] for sample in samples if name in sample]
        if values:
            found[name] = max(values)
    return found
