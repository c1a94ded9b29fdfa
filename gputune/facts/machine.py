"""All facts about a machine, and the function that reads them."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from gputune.facts import (
    board,
    busy,
    container,
    cpu,
    environment,
    gpu,
    libraries,
    memory,
    pci,
    precision,
    process,
)
from gputune.facts.container import Container
from gputune.facts.cpu import Cpu
from gputune.facts.driver import Driver
from gputune.facts.gap import Gap, Gaps
from gputune.facts.gpu import Gpu
from gputune.facts.health import Health
from gputune.facts.libraries import Libraries
from gputune.facts.memory import Memory
from gputune.facts.nvml_answers import NvmlAnswers
from gputune.facts.pci import PciGpu
from gputune.facts.precision import Flags, Precision
from gputune.facts.process import Folder, Process
from gputune.facts.unimported_torch import ask_torch
from gputune.host import Host
from gputune.resources import scheduler
from gputune.resources.scheduler import Scheduler

__all__ = [
    "Container", "Cpu", "Driver", "Facts", "Flags", "Folder", "Gap", "Gpu", "Health", "Libraries", "Memory", "PciGpu",
    "Precision", "Process", "Scheduler", "read",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def device_gpu(self, device: str) -> Gpu | None:
        """The GPU behind the torch device `cuda:N`; None for the CPU, and for a device that does not exist."""
        kind, _, index = device.partition(":")
        if kind != "cuda":
            return None
        return next((found for found in self.gpus if found.torch_index == int(index or 0)), None)


def read(
    host: Host, *, gpu_required: bool = False, gpus_expected: int | None = None, variables: Collection[str] = ()
) -> Facts:
    """Read all facts. torch is imported in a child process by `host.python`, never in this process.

    `variables` are environment variables to keep in addition to those of torch and NVIDIA's libraries.
    """
    try:
        return _read(host, gpu_required, gpus_expected, variables)
    finally:
        host.release()


def _read(host: Host, gpu_required: bool, gpus_expected: int | None, variables: Collection[str]) -> Facts:
    gaps = Gaps()
    before = busy.read(host)
    nvml = NvmlAnswers(host)
    torch = ask_torch(host, gaps, nvml.has_broken)
    of_driver, devices = nvml.read(), torch.get("devices") or []
    nvml.note_absence(bool(devices))
    gaps.found += nvml.gaps.found
    granted = scheduler.read(host)
    cpus = cpu.read(host, granted, gaps)
    others, stolen = _use_by_others(host, before, gaps)
    return Facts(
        gpus=gpu.matched(nvml.gpus, devices, gaps),
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
        board=board.read(host),
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
