"""This machine's fingerprint, cheaply: through NVML and from files. torch is not imported."""

from __future__ import annotations

import sys

from gputune.facts import cpu
from gputune.facts._nvml_answers import dotted, text
from gputune.facts.gap import Gaps
from gputune.facts.gpu import present
from gputune.facts.libraries import ask_torch, installed_torch
from gputune.facts.visible_gpus import VARIABLE, visible
from gputune.host import Host, Nvml, Unreadable
from gputune.profile import Fingerprint
from gputune.resources import cpus, scheduler


def local_fingerprint(host: Host) -> Fingerprint:
    """What a choice may rest on, as it is here and now. What cannot be read is None.

    The GPU is the first that CUDA_VISIBLE_DEVICES leaves, in NVML's order. No choice rests on cublas and cudnn, which
    only an imported torch can tell: those stay None.
    """
    gaps = Gaps()
    torch, cuda = gaps.read("torch", _torch) or (None, None)
    # A torch that was built without CUDA computes on the CPU, whatever GPUs there are.
    gpu = None if torch and not cuda else gaps.read("gpu", lambda: _gpu(host, gaps))
    name, count, capability, driver = gpu or (None, 0, None, None)
    return Fingerprint(
        gpu=name,
        gpu_count=count,
        compute_capability=capability,
        driver=driver,
        torch=torch,
        cuda=cuda,
        cpu=gaps.read("cpu.model", lambda: cpu.model(host)),
        cpu_budget=gaps.read("cpu", lambda: cpus.rank_budget(host, scheduler.read(host))),
    )


def _gpu(host: Host, gaps: Gaps) -> tuple[str, int, str | None, str | None] | None:
    try:
        return _named(host, gaps)
    except Unreadable:
        return _told_by_torch(host, gaps)


def _named(host: Host, gaps: Gaps) -> tuple[str, int, str | None, str | None] | None:
    """Name, number of visible GPUs of that name, compute capability and driver; None where none is visible.

    Raises Unreadable where NVML cannot name what torch uses.
    """
    nvml = host.nvml()
    uuids = [_text(nvml, index, "UUID") for index in range(nvml.count())]
    setting = host.environ.get(VARIABLE)
    places = list(range(len(uuids))) if setting is None else visible(setting, uuids)[0]
    if not places and "MIG-" not in (setting or ""):
        return None
    names = [_text(nvml, place, "Name") for place in places]
    if not names or names[0] is None or _sliced(nvml, places[0]):
        raise Unreadable("NVML cannot name the GPU that torch uses")
    capability = gaps.read("capability", lambda: dotted(nvml.device(places[0], "CudaComputeCapability")))
    driver = gaps.read("driver", lambda: text(nvml.system("DriverVersion")))
    return names[0], names.count(names[0]), capability, driver


def _sliced(nvml: Nvml, place: int) -> bool:
    """Whether the GPU is in MIG mode, in which torch computes on a slice with a name of its own."""
    try:
        return bool(nvml.device(place, "MigMode")[0])
    except (Unreadable, TypeError, IndexError):
        return False


def _told_by_torch(host: Host, gaps: Gaps) -> tuple[str, int, str | None, str | None] | None:
    """The same from torch in a child process, which takes seconds: only where there is a GPU and NVML cannot name it."""
    if not present(host):
        return None
    devices = ask_torch(host, gaps).get("devices") or []
    if not devices:
        return None
    names = [device["name"] for device in devices]
    return names[0], names.count(names[0]), f"{devices[0]['major']}.{devices[0]['minor']}", None


def _text(nvml: Nvml, place: int, name: str) -> str | None:
    try:
        return text(nvml.device(place, name))
    except Unreadable:
        return None


def _torch() -> tuple[str | None, str | None]:
    """Version and CUDA of the torch that this process has, else of the one that is installed beside gputune."""
    torch = sys.modules.get("torch")
    version = getattr(torch, "__version__", None)
    return (str(version), getattr(getattr(torch, "version", None), "cuda", None)) if version else installed_torch()
