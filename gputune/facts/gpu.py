"""The GPUs, as NVML describes them, matched to torch's devices by UUID; without NVML, as torch describes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gputune.facts import health
from gputune.facts._nvml_answers import dotted, gpu_count, one_of, positive, text, whole
from gputune.facts.gap import Gaps
from gputune.facts.health import Health
from gputune.facts.precision import tensor_core_dtypes
from gputune.host import Nvml, Unreadable
from gputune.host.nvml import BREAKING

ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing",
    7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell", 13: "Rubin",
}  # fmt: skip
"""NVML's architecture numbers (nvml.h, NVML_DEVICE_ARCH_*)."""

BRANDS = {
    1: "Quadro", 2: "Tesla", 3: "NVS", 5: "GeForce", 6: "Titan", 12: "Quadro RTX", 13: "RTX", 14: "NVIDIA",
    15: "GeForce", 16: "Titan",
}  # fmt: skip
"""NVML's product lines (nvml.h, NVML_BRAND_*)."""
_UNKNOWN_ARCHITECTURE = 0xFFFFFFFF
UNKNOWN_NAME = "unknown GPU"
VIRTUALIZATION = ("none", "passthrough", "vgpu", "vgpu host", "vsga host")

_MEMORY_INFO_V2 = 0x02000028  # nvml.h, nvmlMemory_v2: the size of the struct and its version


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. None means not read; `Facts.gaps` has the reason as `gpu.<index>.<field>`."""

    index: int
    """NVML's index; a device that only torch lists has an index above NVML's."""
    torch_index: int | None = None
    """N of its torch device `cuda:N`; None if torch does not see it (CUDA_VISIBLE_DEVICES, or a build without CUDA)."""
    name: str
    uuid: str | None = None
    pci_bus_id: str | None = None
    brand: str | None = None
    """NVIDIA's product line: GeForce, Tesla, NVIDIA (data-centre GPUs of today), ..."""
    virtualization: str | None = None
    """NVML's word: none, passthrough (a virtual machine has the whole GPU), vgpu (it has a share of one), ..."""
    architecture: str | None = None
    compute_capability: str | None = None
    tensor_core_dtypes: tuple[str, ...] = ()
    """Which of float16, bfloat16, tf32 and float8 its Tensor Cores multiply natively."""
    multiprocessor_count: int | None = None
    """By torch; None if torch does not see this GPU."""
    core_count: int | None = None
    """CUDA cores by NVML: a fixed number in each multiprocessor of an architecture."""
    vbios: str | None = None
    gsp_firmware: str | None = None
    """The firmware of the GPU's own processor, which current drivers load; None if it is off or the GPU has none."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    """Excludes what the driver reserves, except with drivers before 510."""
    health: Health = field(default_factory=Health)

    @property
    def is_mig_slice(self) -> bool:
        """It is a MIG slice, whose name in torch ends in its profile (MIG 1g.10gb); NVML lists only whole GPUs."""
        return "MIG" in self.name


def listed(nvml: Nvml, gaps: Gaps) -> tuple[Gpu, ...]:
    """The GPUs that NVML lists, each asked about in turn, without what torch says of them."""
    count = gaps.read("gpu.count", lambda: gpu_count(nvml.count())) or 0
    return tuple(_from_nvml(nvml, index, gaps) for index in range(count))


def matched(gpus: tuple[Gpu, ...], devices: list[Mapping[str, Any]], gaps: Gaps) -> tuple[Gpu, ...]:
    """NVML's GPUs with what torch says of them, and those of torch's `devices` that NVML does not list."""
    places = _matches(devices, [gpu.uuid for gpu in gpus])
    known = tuple(
        gpu if place is None else _with_torch(gpu, place, devices[place])
        for gpu, place in zip(gpus, places, strict=True)
    )
    # Devices that match none of NVML's GPUs: MIG slices, which have UUIDs of their own, and with torch before 2.5,
    # which gives no UUIDs, all devices of a machine with several.
    others = [_from_torch(index, device, len(gpus)) for index, device in enumerate(devices) if index not in places]
    for gpu in others if gpus else ():
        if not gpu.is_mig_slice:
            reason = f"NVML lists no GPU with torch device {gpu.torch_index}'s UUID ({gpu.uuid})"
            gaps.add(f"gpu.torch_{gpu.torch_index}", reason)
    return (*known, *others)


def _matches(devices: list[Mapping[str, Any]], uuids: list[str | None]) -> list[int | None]:
    """For each of NVML's GPUs the index of the torch device with its UUID, or of the only one left without a UUID."""
    by_uuid = {f"GPU-{device['uuid']}": index for index, device in enumerate(devices) if device.get("uuid")}
    places = [by_uuid.get(uuid) if uuid else None for uuid in uuids]
    left = [index for index, device in enumerate(devices) if index not in places and "MIG" not in device["name"]]
    if len(left) == 1:
        named = bool(devices[left[0]].get("uuid"))
        free = [n for n, place in enumerate(places) if place is None and not (named and uuids[n])]
        if len(free) == 1:
            places[free[0]] = left[0]
    return places


def _from_torch(index: int, device: Mapping[str, Any], listed: int = 0) -> Gpu:
    capability = f"{device['major']}.{device['minor']}"
    return Gpu(
        index=listed + index,
        torch_index=index,
        name=device["name"],
        uuid=f"GPU-{device['uuid']}" if device.get("uuid") else None,
        compute_capability=capability,
        tensor_core_dtypes=tensor_core_dtypes(capability, device["name"]),
        multiprocessor_count=device["multi_processor_count"],
        memory_total_bytes=device["total_memory"],
    )


def _with_torch(gpu: Gpu, index: int, device: Mapping[str, Any]) -> Gpu:
    name = gpu.name if gpu.name != UNKNOWN_NAME else str(device["name"])
    total = device["total_memory"] if gpu.memory_total_bytes is None else gpu.memory_total_bytes
    return replace(
        gpu,
        torch_index=index,
        name=name,
        tensor_core_dtypes=tensor_core_dtypes(gpu.compute_capability, name),
        multiprocessor_count=device["multi_processor_count"],
        memory_total_bytes=total,
    )


def _from_nvml(nvml: Nvml, index: int, gaps: Gaps) -> Gpu:
    def ask(field: str, name: str, *args: Any, then: Callable[[Any], Any] = whole) -> Any:
        return gaps.read(f"gpu.{index}.{field}", lambda: then(nvml.device(index, name, *args)))

    uuid = ask("uuid", "UUID", then=text)
    capability = ask("compute_capability", "CudaComputeCapability", then=dotted)
    memory = gaps.read(f"gpu.{index}.memory", lambda: _memory(nvml, index)) or (None, None)
    name = ask("name", "Name", then=text) or UNKNOWN_NAME
    return Gpu(
        index=index,
        name=name,
        uuid=uuid,
        pci_bus_id=ask("pci_bus_id", "PciInfo", then=lambda info: text(info["busId"])),
        brand=ask("brand", "Brand", then=lambda number: BRANDS.get(whole(number), str(number))),
        virtualization=ask("virtualization", "VirtualizationMode", then=one_of(VIRTUALIZATION)),
        architecture=ask("architecture", "Architecture", then=_architecture),
        compute_capability=capability,
        tensor_core_dtypes=tensor_core_dtypes(capability, name),
        core_count=ask("core_count", "NumGpuCores", then=positive),
        vbios=ask("vbios", "VbiosVersion", then=text),
        gsp_firmware=ask("gsp_firmware", "GspFirmwareVersion", then=text),
        memory_total_bytes=memory[0],
        memory_used_bytes=memory[1],
        health=health.read(nvml, index, gaps),
    )


def _memory(nvml: Nvml, index: int) -> tuple[int, int]:
    """Total and used bytes. The call's first version, which older drivers have, counts the driver's reserve as used."""
    try:
        answer = nvml.device(index, "MemoryInfo", _MEMORY_INFO_V2)
    except Unreadable as error:
        if error.cause in BREAKING:
            raise
        answer = nvml.device(index, "MemoryInfo")
    return whole(answer["total"]), whole(answer["used"])


def _architecture(number: Any) -> str:
    if number == _UNKNOWN_ARCHITECTURE:
        raise Unreadable("NVML does not know the architecture")
    return ARCHITECTURES.get(whole(number), str(number))
