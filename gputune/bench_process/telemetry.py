"""The state of the GPU while it is measured, through NVML: clock, power, throttle reasons, and who else uses it."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from statistics import median
from typing import Any

from gputune.facts.health import clocks_event_reasons
from gputune.host import Host, Nvml, Unreadable

_SM_CLOCK = 1
_CALL_SECONDS = 2.0
"""How long one call may take; after one that takes longer nothing is sampled any more."""
_APART_SECONDS = 0.2
"""The least time between two looks at the processes: the driver updates their utilisation only a few times a second."""


class Telemetry:
    """Samples one GPU, by its NVML index. With None, or where NVML does not answer, every sample is empty."""

    def __init__(self, index: int | None, host: Host | None = None) -> None:
        self._index = index if index is not None else -1
        self._host = host or Host(nvml_deadline_seconds=_CALL_SECONDS, nvml_per_call=True)
        self._nvml: Nvml | None = None
        self._last_look = -_APART_SECONDS
        self._newest: int | None = None
        """The driver's time stamp of the newest sample of utilisation seen so far."""
        if index is not None:
            with suppress(Unreadable):
                self._nvml = self._host.nvml()

    def sample(self) -> dict[str, float]:
        """Return the current values, without those that cannot be read: sm_clock_mhz, power_watts, throttle_reasons
        (NVML's bits), pcie_generation; and a few times a second
        - gpu_processes: the number of compute processes on the GPU, including this one;
        - other_sm_percent: the highest utilisation of its SMs by another process since the previous look.
        """
        nvml, index = self._nvml, self._index
        if nvml is None:
            return {}
        values = {
            "sm_clock_mhz": _number(nvml.device, index, "ClockInfo", _SM_CLOCK),
            "power_watts": _number(nvml.device, index, "PowerUsage", scale=1e-3),
            "throttle_reasons": _number(clocks_event_reasons, nvml, index),
            "pcie_generation": _number(nvml.device, index, "CurrPcieLinkGeneration"),
        }
        now = self._host.monotonic()
        if now - self._last_look >= _APART_SECONDS:
            self._last_look = now
            values |= {"gpu_processes": self._processes(), "other_sm_percent": self._others()}
        return {name: value for name, value in values.items() if value is not None}

    def _processes(self) -> float | None:
        """Return None also where no process is listed, not even this one: then a container hides them."""
        pids = {process["pid"] for kind in ("", "MPS") for process in self._listed(f"{kind}ComputeRunningProcesses")}
        return float(len(pids)) if pids else None

    def _others(self) -> float | None:
        """The first answer is about the time before the measurement; only its newest time stamp is kept."""
        samples = self._listed("ProcessUtilization", self._newest or 0)
        since, first = self._newest or 0, self._newest is None
        self._newest = max([since, *(sample["timeStamp"] for sample in samples)])
        return None if first else other_sm_percent(samples, os.getpid(), since)

    def _listed(self, name: str, *args: int) -> Sequence[Any]:
        try:
            return list(self._nvml.device(self._index, name, *args)) if self._nvml else []
        except Unreadable:
            return []


def _number(read: Callable[..., Any], *args: Any, scale: float = 1.0) -> float | None:
    try:
        return float(read(*args)) * scale
    except Unreadable:
        return None


def other_sm_percent(samples: Sequence[Any], own: int, since: int) -> float | None:
    """Return the highest utilisation in percent by a process other than `own` after the time stamp `since`; None where
    `own` is not listed, as in a container, which has other pids than the host.
    """
    new = [sample for sample in samples if sample["timeStamp"] > since]
    if own not in {sample["pid"] for sample in new}:
        return None
    return float(max((sample["smUtil"] for sample in new if sample["pid"] != own), default=0))


def summary(samples: list[dict[str, float]]) -> dict[str, float]:
    """Return the medians of clock and power, all throttle reasons, and the highest of every other value."""
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns = {name: [sample[name] for sample in samples if name in sample] for name in names}
    return {name: _SUMMARIES.get(name, max)(values) for name, values in columns.items()}


_SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    "sm_clock_mhz": lambda values: float(round(median(values))),
    "power_watts": lambda values: float(round(median(values))),
    "throttle_reasons": lambda masks: float(reduce(or_, map(int, masks))),
}
