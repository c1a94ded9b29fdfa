"""This machine's fingerprint, read cheaply through NVML and from files, without importing torch."""

import sys
import time
from contextlib import suppress
from typing import Any

from gputune.advice.omp_threads import one_per_core
from gputune.facts._nvml_answers import dotted, gpu_count, text
from gputune.facts.cpu_list import model
from gputune.facts.gap import Gaps
from gputune.facts.unimported_torch import ask_torch, installed_torch
from gputune.facts.visible_gpus import VARIABLE, device_files, forbidden_files, visible
from gputune.host import Host, Nvml, Unreadable
from gputune.host.nvml import BREAKING
from gputune.host.stderr import say
from gputune.profile import Fingerprint
from gputune.resources import room, scheduler


def lacks_device(host: Host, measured: Fingerprint) -> bool:
    """Whether the device that was measured is certainly not here: a GPU where there is none of any kind, or another
    model of CPU. Which GPU there is only its driver knows.
    """
    if measured.gpu:
        return not device_files(host) and not forbidden_files(host)
    with suppress(Unreadable):
        return measured.cpu is not None and model(host) != measured.cpu
    return False


_HUNG_SECONDS = 60.0
"""How long a driver that hung is not asked again by this process."""
_hung_until = [0.0]


def begin(host: Host) -> None:
    """Let NVML come up while something else is done, where `local_fingerprint` will ask it."""
    torch, cuda = _torch()
    if cuda or not torch:
        with suppress(Unreadable):
            host.nvml()


def local_fingerprint(host: Host) -> Fingerprint:
    """The fingerprint of this machine now; a field that cannot be read is None.

    The GPU is the first one that CUDA_VISIBLE_DEVICES leaves visible, in NVML's order. cublas and cudnn stay None: only
    an imported torch knows them, and no choice depends on them.
    """
    gaps = Gaps()
    torch, cuda = gaps.read("torch", _torch) or (None, None)
    # A torch that was built without CUDA computes on the CPU, whatever GPUs there are.
    try:
        gpu = None if torch and not cuda else gaps.read("gpu", lambda: _gpu(host, gaps))
    finally:
        host.release()
    return Fingerprint(
        **(gpu or {}),
        torch=torch,
        cuda=cuda,
        cpu=gaps.read("cpu.model", lambda: model(host)),
        cpu_budget=gaps.read("cpu", lambda: room.rank_budget(host, scheduler.read(host))),
    )


def own_threads(host: Host, here: Fingerprint) -> int:
    """How many threads torch would start by itself; where there are CPUs for one on each, at most so many."""
    cpus = len(host.affinity())
    if here.cpu_budget is None or cpus <= here.cpu_budget:
        return cpus
    return one_per_core(cpus, *host.cpu_counts())


def _gpu(host: Host, gaps: Gaps) -> dict[str, Any] | None:
    if time.monotonic() < _hung_until[0]:
        return None
    try:
        return _from_nvml(host, gaps)
    except Unreadable as fault:
        if fault.cause in BREAKING:  # torch would wait for the same driver
            _hung_until[0] = time.monotonic() + _HUNG_SECONDS
            say(f"{fault}: what was measured on a GPU does not count here; gputune check says more")
            return None
        return _from_torch(host, gaps)


def _from_nvml(host: Host, gaps: Gaps) -> dict[str, Any] | None:
    """Raises Unreadable where NVML cannot name the GPU that torch uses."""
    nvml = host.nvml()
    uuids = [_device_text(nvml, index, "UUID") for index in range(gpu_count(nvml.count()))]
    setting = host.environ.get(VARIABLE)
    places = list(range(len(uuids))) if setting is None else visible(setting, uuids)[0]
    if not places and "MIG-" not in (setting or ""):
        return None
    names = [_device_text(nvml, place, "Name") for place in places]
    if not names or names[0] is None or _sliced(nvml, places[0]):
        raise Unreadable("NVML cannot name the GPU that torch uses")
    return {
        "gpu": names[0],
        "gpu_count": names.count(names[0]),
        "compute_capability": gaps.read("capability", lambda: dotted(nvml.device(places[0], "CudaComputeCapability"))),
        "driver": gaps.read("driver", lambda: text(nvml.system("DriverVersion"))),
    }


def _sliced(nvml: Nvml, place: int) -> bool:
    """Whether the GPU is in MIG mode, in which torch computes on a slice with a name of its own."""
    try:
        return bool(nvml.device(place, "MigMode")[0])
    except (Unreadable, TypeError, IndexError, KeyError):
        return False


def _from_torch(host: Host, gaps: Gaps) -> dict[str, Any] | None:
    """From torch in a child process, which takes seconds and does not know the driver."""
    if not device_files(host):
        return None
    devices = ask_torch(host, gaps).get("devices") or []
    if not devices:
        return None
    names = [device["name"] for device in devices]
    capability = f"{devices[0]['major']}.{devices[0]['minor']}"
    return {"gpu": names[0], "gpu_count": names.count(names[0]), "compute_capability": capability}


def _device_text(nvml: Nvml, place: int, name: str) -> str | None:
    """None where NVML gives none. Raises Unreadable where it hangs or has broken off."""
    try:
        return text(nvml.device(place, name))
    except Unreadable as fault:
        if fault.cause in BREAKING:
            raise
        return None


def _torch() -> tuple[str | None, str | None]:
    """Version and CUDA version of the torch that this process imported, else of the one installed beside gputune."""
    torch = sys.modules.get("torch")
    version = getattr(torch, "__version__", None)
    return (str(version), getattr(getattr(torch, "version", None), "cuda", None)) if version else installed_torch()
