"""What several checks ask of the facts."""

import re

from gputune.checks import Finding
from gputune.facts import Facts
from gputune.facts.precision import tensor_core_dtypes


def number(version: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version; None where there are none."""
    found = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def reason(facts: Facts, fact: str) -> str | None:
    """Why a fact is missing, where a gap says."""
    return next((gap.reason for gap in facts.gaps if gap.fact == fact), None)


def unread(facts: Facts, check: str, fact: str, what: str) -> Finding:
    """`what` is not known; the gap's reason goes with it."""
    why = reason(facts, fact)
    return Finding(check=check, severity="UNKNOWN", message=f"{what} could not be read{f' ({why})' if why else ''}")


def nvidia_files(facts: Facts) -> tuple[str, ...]:
    """The GPUs' device files, without WSL's /dev/dxg, which stands for a GPU of any maker."""
    return tuple(path for path in facts.container.gpu_device_files if path != "/dev/dxg")


def gpu_beside(facts: Facts) -> bool:
    """An NVIDIA GPU is there, whether or not NVML or torch can use it."""
    return bool(facts.gpus or nvidia_files(facts))


def no_gpu(facts: Facts, check: str) -> Finding:
    """The answer of a check about each GPU where none is listed."""
    if gpu_beside(facts):
        return Finding(
            check=check, severity="UNKNOWN", message="there is a GPU, but neither NVML nor torch describes it"
        )
    return Finding(check=check, severity="NOT_APPLICABLE", message="no NVIDIA GPU is known here")


def without_cuda_torch(facts: Facts, check: str) -> Finding | None:
    """The answer of a check about torch's CUDA where torch did not answer or has none; None where it has."""
    if facts.libraries.torch is None:
        return unread(facts, check, "libraries.torch", "torch's version")
    if facts.libraries.cuda is None:
        return Finding(check=check, severity="NOT_APPLICABLE", message="this torch is built without CUDA")
    return None


def all_lack(facts: Facts, dtype: str) -> bool:
    """Every GPU is known to have no Tensor Cores for `dtype`."""
    return all(gpu.compute_capability and dtype not in tensor_core_dtypes(gpu.compute_capability) for gpu in facts.gpus)
