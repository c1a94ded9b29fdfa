"""All facts about a machine, and the function that reads them."""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from gputune.facts import busy, container, cpu, driver, environment, gpu, libraries, memory, pci, precision, process
from gputune.facts.container import Container
from gputune.facts.cpu import Cpu
from gputune.facts.driver import Driver
from gputune.facts.gap import Gap, Gaps
from gputune.facts.gpu import Gpu
from gputune.facts.health import Health
from gputune.facts.libraries import Libraries
from gputune.facts.memory import Memory
from gputune.facts.pci import PciGpu
from gputune.facts.precision import Flags, Precision
from gputune.facts.process import Folder, Process
from gputune.facts.unimported_torch import ask_torch, modes
from gputune.facts.visible_gpus import device_files
from gputune.host import Host, Nvml, NvmlAbsent, Unreadable
from gputune.host.nvml import BREAKING
from gputune.resources import scheduler
from gputune.resources.scheduler import Scheduler

__all__ = [
    "Container", "Cpu", "Driver", "Facts", "Flags", "Folder", "Gap", "Gpu", "Health", "Libraries", "Memory", "PciGpu",
    "Precision", "Process", "Scheduler", "read",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)  # without slots, which a cached property does not bear
class Facts:
    """One machine, as one process on it sees it."""

    gpus: tuple[Gpu, ...]
    pci_gpus: tuple[PciGpu, ...] | None = None
    """NVIDIA's GPUs on the PCI bus, whichever driver holds them; None if the bus could not be read."""
    driver: Driver
    libraries: Libraries
    precision: Precision
    cpu: Cpu
    memory: Memory
    container: Container
    process: Process
    scheduler: Scheduler
    environment: dict[str, str] = field(default_factory=dict)
    """The variables that are set and that torch, NVIDIA's libraries or a check may read, by name."""
    board: str | None = None
    """The model of a Jetson board, whose GPU is integrated; None for other machines."""
    gpu_required: bool = False
    """The user asked for a GPU with `--require-gpu`."""
    gpus_expected: int | None = None
    """The number of GPUs that the user expects here (`--expect-gpus N`)."""
    gaps: tuple[Gap, ...] = ()

    @cached_property
    def gaps_by_name(self) -> Mapping[str, Sequence[Gap]]:
        """By each fact (`gpu.3.name`) and its subject (`gpu.3`): a driver that lies leaves thousands of gaps."""
        found: dict[str, list[Gap]] = {}
        for gap in self.gaps:
            for name in (gap.fact, gap.fact.rpartition(".")[0]):
                found.setdefault(name, []).append(gap)
        return found

    def device_gpu(self, device: str) -> Gpu | None:
        """The GPU behind the torch device `cuda:N`; None for the CPU, and for a device that does not exist."""
        kind, _, index = device.partition(":")
        if kind != "cuda":
            return None
        return next((found for found in self.gpus if found.torch_index == int(index or 0)), None)


def read(
    host: Host,
    *,
    gpu_required: bool = False,
    gpus_expected: int | None = None,
    variables: Collection[str] = (),
    torch: ModuleType | None = None,
) -> Facts:
    """Read all facts, with torch in a child process. `variables` are kept beside those of torch and NVIDIA. `torch` is
    that of this process, whose flags and number of threads are read as they are now.
    """
    try:
        return _read(host, gpu_required, gpus_expected, variables, modes(torch) if torch else {})
    finally:
        host.release()


def _read(
    host: Host,
    gpu_required: bool,
    gpus_expected: int | None,
    variables: Collection[str],
    here: Mapping[str, Any],
) -> Facts:
    gaps = Gaps()
    before = busy.read(host)
    nvml = NvmlAnswers(host)
    torch = {**ask_torch(host, gaps, nvml.has_broken), **here}
    (of_driver, gpus), devices = nvml.answers, torch.get("devices") or []
    nvml.note_absence(bool(devices))
    gaps.found += nvml.gaps.found
    granted = scheduler.read(host)
    cpus = cpu.read(host, granted, gaps)
    others, stolen = _use_by_others(host, before, gaps)
    return Facts(
        gpus=gpu.matched(gpus, devices, gaps),
        pci_gpus=pci.read(host, gaps),
        driver=of_driver,
        libraries=libraries.read(host, torch, gaps),
        precision=precision.read(host, torch),
        cpu=replace(cpus, others=others, stolen=stolen),
        memory=memory.read(host, gaps),
        container=container.read(host),
        process=process.read(host, gaps),
        scheduler=granted,
        environment=environment.read(host, variables),
        board=board_model(host),
        gpu_required=gpu_required,
        gpus_expected=gpus_expected,
        gaps=tuple(gaps.found),
    )


def _use_by_others(host: Host, before: busy.Reading | None, gaps: Gaps) -> tuple[float | None, float | None]:
    """How many CPUs others used since a first look, after a moment at the least, and how many of them were stolen."""
    if before is None:
        gaps.add("cpu.others", "/proc/stat does not count the CPUs of this process")
        return None, None
    time.sleep(max(0.0, busy.LEAST_SECONDS - (host.monotonic() - before.at)))
    found = busy.conditions(before, busy.read(host))
    if not found:
        gaps.add("cpu.others", "two looks at /proc/stat, one after the other, contradict each other")
        return None, None
    return found["other_cpus"], found.get("stolen_cpus", 0.0)


_TELLING = ("version_mismatch", "unknown_error", *BREAKING)
"""The causes for which NVML's absence shows that there is a driver to ask."""


class NvmlAnswers:
    """NVML, which comes up from now on. The driver's versions are asked first: after a GPU that hangs nothing is."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.gaps = Gaps()
        self._absent: Unreadable | None = None
        self._begun: Nvml | None = None
        try:
            self._begun = host.nvml()
        except Unreadable as fault:
            self._absent = fault

    @cached_property
    def answers(self) -> tuple[Driver, tuple[Gpu, ...]]:
        """NVML's, and what the kernel says of the driver."""
        nvml = self._up()
        return driver.read(self._host, nvml, self.gaps), gpu.listed(nvml, self.gaps) if nvml else ()

    def has_broken(self) -> bool:
        """Ask NVML, and return whether it hung or crashed."""
        _ = self.answers
        causes = [gap.cause for gap in self.gaps.found] + ([self._absent.cause] if self._absent else [])
        return any(cause in BREAKING for cause in causes)

    def note_absence(self, gpu_seen: bool) -> None:
        """Make NVML's absence a gap, but only on a machine with a GPU, which torch may have seen, or with a driver."""
        if self._absent and (gpu_seen or device_files(self._host) or self._absent.cause in _TELLING):
            self.gaps.add("driver.nvml", str(self._absent), self._absent.cause)

    def _up(self) -> Nvml | None:
        if self._begun is None:
            return None
        try:
            self._begun.count()
        except NvmlAbsent as fault:
            self._absent = fault
            return None
        except Exception:  # noqa: S110 - it is the count that cannot be read, which becomes a gap where it is asked for
            pass
        return self._begun


_FAMILIES = re.compile(r"Jetson|Orin|Xavier|Thor\b|Tegra")
_SIGNS = ("/etc/nv_tegra_release", "/dev/nvhost-gpu", "/dev/nvmap")
"""Files by which a Jetson board is known: the release file of NVIDIA's Linux for Jetson, and the device files of the
driver of its integrated GPU."""
NAMELESS = "this Jetson board"


def board_model(host: Host) -> str | None:
    """The model of a Jetson board, whose integrated GPU is not on the PCI bus; None for other machines."""
    model = host.read_or_empty("/proc/device-tree/model").strip("\0 \n")
    if _FAMILIES.search(model):
        return model
    return (model or NAMELESS) if any(host.exists(sign) for sign in _SIGNS) else None
