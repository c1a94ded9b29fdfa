"""Questions about the facts that several checks ask."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gputune.facts import Facts, Gap, Gpu
from gputune.facts.visible_gpus import VARIABLE, visible
from gputune.resources.unreadable import Cause


def gap(facts: Facts, fact: str) -> Gap | None:
    return next(iter(facts.gaps_by_name.get(fact, ())), None)


def gaps_of(facts: Facts, gpu: Gpu) -> Sequence[Gap]:
    return facts.gaps_by_name.get(f"gpu.{gpu.index}", ())


def reason(facts: Facts, fact: str) -> str | None:
    return missing.reason if (missing := gap(facts, fact)) else None


def cause(facts: Facts, fact: str) -> Cause | None:
    return missing.cause if (missing := gap(facts, fact)) else None


def consumer(gpu: Gpu) -> str | None:
    """Why a consumer GPU lacks what data-centre GPUs have; None for any other GPU."""
    told = gpu.brand in ("GeForce", "Titan") or (gpu.brand is None and "GeForce" in gpu.name)
    return f"{gpu.name} is a consumer GPU without it" if told else None


def data_centre(gpu: Gpu) -> bool:
    """A card made for servers (Tesla T4, NVIDIA H200), not for a desktop, laptop, workstation or embedded board."""
    other = re.search(r"RTX|Quadro|TITAN|GeForce|CMP|Jetson|Orin|Thor|GB10\b|nvgpu", gpu.name, re.IGNORECASE)
    return gpu.brand in ("Tesla", "NVIDIA") and not other


def share(gpu: Gpu) -> str | None:
    """Why a vGPU, a share of a GPU, lacks what the hypervisor keeps to itself; None for a whole GPU."""
    return "a vGPU leaves it to its host" if gpu.virtualization == "vgpu" else None


def consumer_or_share(gpu: Gpu) -> str | None:
    return consumer(gpu) or share(gpu)


def number(version: str | None) -> tuple[int, int] | None:
    """Major and minor number of a version; None if it does not begin with two numbers."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(match[1]), int(match[2])) if match else None


def nvidia_files(facts: Facts) -> tuple[str, ...]:
    """The device files of NVIDIA's GPUs, without WSL's /dev/dxg, which may be any vendor's GPU."""
    return tuple(path for path in facts.container.gpu_device_files if path != "/dev/dxg")


def has_gpu(facts: Facts) -> bool:
    """There is an NVIDIA GPU, whether or not NVML or torch can use it."""
    return bool(facts.gpus or nvidia_files(facts))


def gpu_asked_for(facts: Facts) -> list[str]:
    """The signs that a GPU was asked for; empty if there are none."""
    wanted = facts.environment.get("NVIDIA_VISIBLE_DEVICES")
    signs = ["--require-gpu"] if facts.gpu_required else []
    signs += [f"--expect-gpus {facts.gpus_expected}"] if facts.gpus_expected else []
    # `all` comes with an image, so that it is no wish of a job that was granted no GPU.
    nothing = ("none", "void", "all") if facts.scheduler.gpu_count == 0 else ("none", "void")
    signs += [f"NVIDIA_VISIBLE_DEVICES={wanted}"] if wanted and wanted not in nothing else []
    signs += nvidia_files(facts)
    return signs + _granted(facts)


def _granted(facts: Facts) -> list[str]:
    name, gpus, count = facts.scheduler.name or "the scheduler", facts.scheduler.gpus, facts.scheduler.gpu_count
    if gpus and (count is None or count == 1):
        return [f"{name} granted GPU {gpus}"]
    if not count:
        return []
    return [f"{name} granted {count} GPU{'s' if count > 1 else ''}{f' ({gpus})' if gpus else ''}"]


def on(facts: Facts, variable: str) -> bool:
    """An environment variable is set to anything that does not mean off."""
    return facts.environment.get(variable, "").strip().lower() not in ("", "0", "false", "off", "no")


def another_jobs(facts: Facts, gpu: Gpu) -> bool:
    """Whether NVML lists a GPU of another job or of none: this job sees as many others as it was granted."""
    granted = facts.scheduler.gpu_count
    if not granted or facts.scheduler.name == "kubernetes" or gpu.is_mig_slice:
        return False
    ours = {other.index for other in facts.gpus if other.torch_index is not None}
    if facts.libraries.device_count is None:
        uuids = [other.uuid for other in facts.gpus]
        ours = set(visible(facts.environment[VARIABLE], uuids)[0]) if VARIABLE in facts.environment else set()
    return len(ours) == granted and gpu.index not in ours
