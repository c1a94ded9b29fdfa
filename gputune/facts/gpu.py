"""Every GPU, through NVML, mapped to torch's devices by UUID. Without NVML, what torch knows of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gputune.facts import health
from gputune.facts._nvml_answers import dotted, one_of, text, whole
from gputune.facts.gap import Gaps
from gputune.facts.health import Health
from gputune.facts.precision import tensor_core_dtypes
from gputune.host import Host, Nvml, Unreadable

ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing",
    7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell", 13: "Rubin",
}  # fmt: skip
"""NVML's architecture numbers (nvml.h, NVML_DEVICE_ARCH_*), and likewise below."""

BRANDS = {
    1: "Quadro", 2: "Tesla", 3: "NVS", 5: "GeForce", 6: "Titan", 12: "Quadro RTX", 13: "RTX", 14: "NVIDIA",
    15: "GeForce", 16: "Titan",
}  # fmt: skip
_UNKNOWN_ARCHITECTURE = 0xFFFFFFFF
UNKNOWN_NAME = "unknown GPU"
VIRTUALIZATION = ("none", "passthrough", "vgpu", "vgpu host", "vsga host")

_MEMORY_INFO_V2 = 0x02000028  # nvml.h, nvmlMemory_v2: the size of the struct and its version


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. None means not read: the reason is in the Facts' gaps as `gpu.<index>.<field>`."""

    index: int
    """NVML's index; for a device that only torch lists, one beyond NVML's."""
    torch_index: int | None = None
    """The torch device that this GPU is; None when torch does not see it (CUDA_VISIBLE_DEVICES, no CUDA build)."""
    name: str
    uuid: str | None = None
    pci_bus_id: str | None = None
    brand: str | None = None
    """NVIDIA's product line: GeForce, Tesla, NVIDIA (data-centre GPUs of today), ..."""
    virtualization: str | None = None
    """Where NVML says so: none, passthrough (the whole GPU given to a virtual machine), vgpu (a share of one), ..."""
    architecture: str | None = None
    compute_capability: str | None = None
    tensor_core_dtypes: tuple[str, ...] = ()
    """What its Tensor Cores multiply natively, of float16, bfloat16, tf32 and float8."""
    multiprocessor_count: int | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    """Without what the driver reserves, but in drivers before 510, which count that in."""
    health: Health = field(default_factory=Health)


def read(nvml: Nvml | None, devices: list[Mapping[str, Any]], gaps: Gaps) -> tuple[Gpu, ...]:
    """All GPUs of NVML, or torch's `devices` where NVML is missing or lists none."""
    count = nvml and gaps.read("gpu.count", lambda: whole(nvml.count()))
    if not nvml or not count:
        return tuple(_from_torch(index, device) for index, device in enumerate(devices))
    alone = count == len(devices) == 1
    gpus = tuple(_from_nvml(nvml, index, lambda uuid: _match(devices, uuid, alone), gaps) for index in range(count))
    known = {gpu.torch_index for gpu in gpus}
    strangers = [(index, device) for index, device in enumerate(devices) if index not in known]
    for index, device in strangers:
        if "MIG" not in device["name"]:  # a slice has a UUID of its own
            gaps.add(f"gpu.torch_{index}", f"NVML lists no GPU with torch device {index}'s UUID ({device.get('uuid')})")
    # A MIG slice has a UUID of its own, and torch before 2.5 tells none: what torch computes on is listed all the same.
    return gpus + tuple(_from_torch(index, device, listed=count) for index, device in strangers)


def _match(devices: list[Mapping[str, Any]], uuid: str | None, alone: bool) -> tuple[int | None, Mapping[str, Any]]:
    """The device of torch with NVML's UUID. Where one side tells none (torch before 2.5), one GPU `alone` on each side is one."""
    for index, device in enumerate(devices):
        known = device.get("uuid")
        same = uuid == f"GPU-{known}" if known and uuid else alone
        if same:
            return index, device
    return None, {}


def present(host: Host) -> bool:
    """Whether a GPU's device files exist here (NVIDIA's character devices, or WSL's)."""
    return bool(device_files(host))


def device_files(host: Host) -> tuple[str, ...]:
    """Those that this process may open: a scheduler's cgroup forbids the others, though they can be seen."""
    return tuple(
        path
        for path in (f"/dev/{name}" for name in host.names("/dev"))
        if path == "/dev/dxg" or (re.fullmatch(r"/dev/nvidia\d+", path) and not host.forbidden(path))
    )


def _from_torch(index: int, device: Mapping[str, Any], listed: int = 0) -> Gpu:
    capability = f"{device['major']}.{device['minor']}"
    return Gpu(
        index=listed + index,
        torch_index=index,
        name=device["name"],
        uuid=f"GPU-{device['uuid']}" if device.get("uuid") else None,
        compute_capability=capability,
        tensor_core_dtypes=tensor_core_dtypes(capability),
        multiprocessor_count=device["multi_processor_count"],
        memory_total_bytes=device["total_memory"],
    )


def _from_nvml(
    nvml: Nvml, index: int, match: Callable[[str | None], tuple[int | None, Mapping[str, Any]]], gaps: Gaps
) -> Gpu:
    def ask(field: str, name: str, *args: Any, then: Callable[[Any], Any] = whole) -> Any:
        return gaps.read(f"gpu.{index}.{field}", lambda: then(nvml.device(index, name, *args)))

    uuid = ask("uuid", "UUID", then=text)
    torch_index, device = match(uuid)
    capability = ask("compute_capability", "CudaComputeCapability", then=dotted)
    memory = gaps.read(f"gpu.{index}.memory", lambda: _memory(nvml, index)) or (device.get("total_memory"), None)
    return Gpu(
        index=index,
        torch_index=torch_index,
        name=ask("name", "Name", then=text) or device.get("name") or UNKNOWN_NAME,
        uuid=uuid,
        pci_bus_id=ask("pci_bus_id", "PciInfo", then=lambda info: text(info["busId"])),
        brand=ask("brand", "Brand", then=lambda number: BRANDS.get(whole(number), str(number))),
        virtualization=ask("virtualization", "VirtualizationMode", then=one_of(VIRTUALIZATION)),
        architecture=ask("architecture", "Architecture", then=_architecture),
        compute_capability=capability,
        tensor_core_dtypes=tensor_core_dtypes(capability),
        multiprocessor_count=device.get("multi_processor_count"),
        memory_total_bytes=memory[0],
        memory_used_bytes=memory[1],
        health=health.read(nvml, index, gaps),
    )


def _memory(nvml: Nvml, index: int) -> tuple[int, int]:
    """Total and used bytes. The first version of the call counts what the driver reserves as used."""
    try:
        answer = nvml.device(index, "MemoryInfo", _MEMORY_INFO_V2)
    except Unreadable:
        answer = nvml.device(index, "MemoryInfo")
    return whole(answer["total"]), whole(answer["used"])


def _architecture(number: Any) -> str:
    if number == _UNKNOWN_ARCHITECTURE:
        raise Unreadable("NVML does not know it")
    return ARCHITECTURES.get(whole(number), str(number))
