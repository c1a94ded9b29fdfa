"""Is each GPU like its neighbours of the same name?

A card with fewer multiprocessors, less memory, a lower clock or a narrower slot than the others holds all of them up,
since data-parallel training runs at the pace of the slowest. Other firmware makes errors that only one card has hard to
explain. Cards of one name come from different makers in desktops and workstations: there only what the chip has counts.

Source: NVIDIA, DCGM, system validation; driver README, GSP Firmware; nvmlDeviceGetNumGpuCores.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, counted, gib, no_gpu, not_applicable, ok, unknown, warning
from gputune.checks._questions import cause, data_centre, gap
from gputune.checks._remedies import address_of, typed
from gputune.checks.gpu_mix import candidates, kinds
from gputune.facts import Facts, Gpu

SAME = 0.01
"""Retired pages make a card's memory smaller than its neighbours' by less than this part."""


@dataclass(frozen=True, slots=True)
class Trait:
    """A property that GPUs of one name share. A text has no order, so that a difference names no better one."""

    what: str
    path: str
    """Where a `Gpu` has it."""
    shown: Callable[[Any], str] = str
    on_servers: bool = True
    """Only data-centre cards are alike in it."""
    tolerance: float = 0.0

    def of(self, facts: Facts, gpu: Gpu) -> Any:
        if self.path == "gsp_firmware" and cause(facts, f"gpu.{gpu.index}.gsp_firmware") == "not_supported":
            return "off"  # the driver does without it, so that NVML has no version to give
        return attrgetter(self.path)(gpu)


TRAITS = (
    Trait("multiprocessors", "multiprocessor_count", on_servers=False),
    Trait("CUDA cores", "core_count", on_servers=False),
    Trait("memory", "memory_total_bytes", gib, on_servers=False, tolerance=SAME),
    Trait("GSP firmware", "gsp_firmware", on_servers=False),
    Trait("VBIOS", "vbios"),
    Trait("highest clock (MHz)", "health.sm_clock_max_mhz"),
    Trait("default power limit (W)", "health.power_default_limit_watts", "{:g}".format),
    Trait("PCIe generation", "health.pcie_generation_max"),
    Trait("PCIe lanes", "health.pcie_width_max"),
)
REMEDY = "show what the card says of itself: compare a neighbour's; other firmware is updated, other hardware replaced"


def check(facts: Facts, measurements: Measurements) -> Findings:
    whole = [gpu for gpu in candidates(facts) if not gpu.is_mig_slice and not gpu.health.mig]
    compared = [gpu for gpu in whole if gpu.virtualization != "vgpu"]
    groups = [kind for kind in kinds(compared) if len(kind) > 1]
    if not facts.gpus:
        yield no_gpu(facts)
    elif not groups:
        yield not_applicable("there are no two whole GPUs of one kind to compare")
    for group in groups:
        yield from _judge(facts, group)


def _judge(facts: Facts, group: list[Gpu]) -> Findings:
    differences: dict[int, list[str]] = defaultdict(list)
    alike = []
    for trait in TRAITS:
        read = _read(facts, trait, group)
        for gpu, difference in _odd(facts, trait, read):
            differences[gpu.index].append(difference)
        alike += [trait.what] if len(read) == len(group) else []
    for gpu in group:
        if gpu.index in differences:
            message = f"unlike its neighbours: {', '.join(differences[gpu.index])}"
            yield warning(message, typed(f"nvidia-smi -q -i {address_of(gpu)}", note=REMEDY), f"GPU {gpu.index}")
    if not differences:
        yield _no_difference(facts, group, alike)


def _no_difference(facts: Facts, group: list[Gpu], alike: list[str]) -> Finding:
    name = f"{counted(len(group), 'GPU')} ({group[0].name})"
    unread = [gpu for gpu in group if not (gpu.multiprocessor_count or gpu.core_count) or _by_torch(facts, gpu)]
    if unread or not alike:
        return unknown(f"{name}: not every one's multiprocessors and memory could be read")
    return ok(f"{name} are alike in {', '.join(alike)}")


def _read(facts: Facts, trait: Trait, group: list[Gpu]) -> list[Gpu]:
    """The GPUs of which this was read, and can be compared: ECC takes up some memory on cards with GDDR."""
    if trait.on_servers and not all(data_centre(gpu) for gpu in group):
        return []
    read = [gpu for gpu in group if trait.of(facts, gpu) is not None]
    if trait.what == "memory":
        one_mode = len({gpu.health.ecc for gpu in read}) < 2
        return [gpu for gpu in read if (one_mode or gpu.health.ecc) and not _by_torch(facts, gpu)]
    return read


def _by_torch(facts: Facts, gpu: Gpu) -> bool:
    """NVML did not tell how much memory it has, and torch counts it differently."""
    return gap(facts, f"gpu.{gpu.index}.memory") is not None


def _odd(facts: Facts, trait: Trait, gpus: Sequence[Gpu]) -> Iterator[tuple[Gpu, str]]:
    """The GPUs that differ from more than half of them; if there are not as many alike, those with less, or all."""
    values = [trait.of(facts, gpu) for gpu in gpus]
    likes = [sum(_same(trait, value, other) for other in values) for value in values]
    if not values or min(likes) == len(values):
        return
    usual = values[likes.index(max(likes))]
    if 2 * max(likes) <= len(values):
        usual = None if isinstance(usual, str) else max(values)
    for gpu, value in zip(gpus, values, strict=True):
        if usual is None or not _same(trait, value, usual):
            others = sorted({trait.shown(other) for other in values if not _same(trait, value, other)})
            yield gpu, f"{trait.what} {trait.shown(value)} (theirs: {', '.join(others)})"


def _same(trait: Trait, one: Any, other: Any) -> bool:
    if isinstance(one, str):
        return bool(one == other)
    return bool(abs(one - other) <= trait.tolerance * max(one, other))
