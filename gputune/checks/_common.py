"""The types that checks are written in, and what several of them ask of the facts."""

import re
from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.facts import Facts, Gpu, Health
from gputune.facts.precision import tensor_core_dtypes
from gputune.measurement import Measurement

__all__ = ["Facts", "Finding", "Findings", "Gpu", "Health", "Measurement", "Measurements"]

Findings = Iterator[Finding]
Measurements = Sequence[Measurement]


def reason(facts: Facts, fact: str) -> str | None:
    """Why a fact is missing, where a gap says."""
    return next((gap.reason for gap in facts.gaps if gap.fact == fact), None)


def consumer(gpu: Gpu) -> str | None:
    """Names a consumer GPU, which lacks much of what data-centre GPUs have."""
    return f"{gpu.name} is a consumer GPU without it" if gpu.brand in ("GeForce", "Titan") else None


def share(gpu: Gpu) -> str | None:
    """Names a share of a GPU that a hypervisor hands out: the hypervisor looks after the rest."""
    return "a vGPU leaves it to its host" if gpu.virtualization == "vgpu" else None


def consumer_or_share(gpu: Gpu) -> str | None:
    return consumer(gpu) or share(gpu)


def number(version: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version; None where there are none."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def nvidia_files(facts: Facts) -> tuple[str, ...]:
    """The GPUs' device files, without WSL's /dev/dxg, which stands for a GPU of any maker."""
    return tuple(path for path in facts.container.gpu_device_files if path != "/dev/dxg")


def gpu_beside(facts: Facts) -> bool:
    """An NVIDIA GPU is there, whether or not NVML or torch can use it."""
    return bool(facts.gpus or nvidia_files(facts))


def gpu_asked_for(facts: Facts) -> list[str]:
    """The signs that somebody wants a GPU here."""
    wanted = facts.environment.get("NVIDIA_VISIBLE_DEVICES")
    signs = ["--require-gpu"] if facts.gpu_required else []
    signs += [f"NVIDIA_VISIBLE_DEVICES={wanted}"] if wanted and wanted not in ("none", "void") else []
    signs += nvidia_files(facts)
    if facts.scheduler.gpus:
        signs.append(f"{facts.scheduler.name or 'the scheduler'} granted GPU {facts.scheduler.gpus}")
    return signs


def all_lack(facts: Facts, dtype: str) -> bool:
    """Every GPU is known to have no Tensor Cores for `dtype`."""
    return all(gpu.compute_capability and dtype not in tensor_core_dtypes(gpu.compute_capability) for gpu in facts.gpus)


def on(facts: Facts, variable: str) -> bool:
    """A variable is set to something other than off."""
    return facts.environment.get(variable, "").strip().lower() not in ("", "0", "false", "off", "no")
