"""Questions about the facts that several checks ask."""

import re

from gputune.facts import Facts, Gap, Gpu
from gputune.resources.unreadable import Cause


def gap(facts: Facts, fact: str) -> Gap | None:
    """The gap of a fact that is missing, if there is one."""
    return next((gap for gap in facts.gaps if gap.fact == fact), None)


def reason(facts: Facts, fact: str) -> str | None:
    """The reason why a fact is missing, for people; None if no gap gives one."""
    return missing.reason if (missing := gap(facts, fact)) else None


def cause(facts: Facts, fact: str) -> Cause | None:
    """The reason why a fact is missing, for code; None if no gap gives one."""
    return missing.cause if (missing := gap(facts, fact)) else None


def consumer(gpu: Gpu) -> str | None:
    """Why a consumer GPU lacks what data-centre GPUs have; None for any other GPU."""
    return f"{gpu.name} is a consumer GPU without it" if gpu.brand in ("GeForce", "Titan") else None


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
    signs += [f"NVIDIA_VISIBLE_DEVICES={wanted}"] if wanted and wanted not in ("none", "void") else []
    signs += nvidia_files(facts)
    if facts.scheduler.gpus:
        signs.append(f"{facts.scheduler.name or 'the scheduler'} granted GPU {facts.scheduler.gpus}")
    return signs


def on(facts: Facts, variable: str) -> bool:
    """An environment variable is set to anything that does not mean off."""
    return facts.environment.get(variable, "").strip().lower() not in ("", "0", "false", "off", "no")
