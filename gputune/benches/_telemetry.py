"""What the GPU does while it is measured: clock, power and what throttles it, through NVML."""

from __future__ import annotations

from functools import reduce
from operator import or_
from statistics import median

from gputune.facts.health import clocks_event_reasons
from gputune.host import Host, Nvml, Unreadable

_SM_CLOCK = 1


class Telemetry:
    """Samples one GPU, by its NVML index. With None, or where NVML does not answer, there is nothing to sample."""

    def __init__(self, index: int | None) -> None:
        self._index = index if index is not None else -1
        self._nvml: Nvml | None = None
        if index is not None:
            try:
                self._nvml = Host().nvml()
            except Unreadable:
                self._nvml = None

    def sample(self) -> dict[str, float]:
        """sm_clock_mhz, power_watts, throttle_reasons and pcie_generation now; without those that cannot be read."""
        if self._nvml is None:
            return {}
        found = {
            "sm_clock_mhz": self._ask("ClockInfo", _SM_CLOCK),
            "power_watts": self._ask("PowerUsage", scale=1e-3),
            "throttle_reasons": self._reasons(),
            "pcie_generation": self._ask("CurrPcieLinkGeneration"),
        }
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


def summary(samples: list[dict[str, float]]) -> dict[str, float]:
    """Medians of clock and power, all throttle reasons that occurred, and the highest PCIe generation."""
    found: dict[str, float] = {}
    for name in ("sm_clock_mhz", "power_watts"):
        values = [sample[name] for sample in samples if name in sample]
        if values:
            found[name] = float(round(median(values)))
    masks = [int(sample["throttle_reasons"]) for sample in samples if "throttle_reasons" in sample]
    if masks:
        found["throttle_reasons"] = float(reduce(or_, masks))
    generations = [sample["pcie_generation"] for sample in samples if "pcie_generation" in sample]
    if generations:
        found["pcie_generation"] = max(generations)
    return found
