"""The dtypes that the hardware multiplies natively, and torch's precision flags."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gputune.host import Host

# Tensor Core dtypes by the lowest compute capability that has them (NVIDIA's CUDA programming guide, table of
# capabilities; fp8 from 8.9). Below 8.0 torch emulates bfloat16, slowly.
_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # in /proc/cpuinfo
_SINCE = {"float16": (7, 0), "bfloat16": (8, 0), "tf32": (8, 0), "float8": (8, 9)}

# NVIDIA, CUDA GPU Compute Capability; 10.7 as vLLM names sm_107. A major number alone holds for its minor ones that are
# not listed.
_ARCHITECTURES = {
    "3": "Kepler", "5": "Maxwell", "6": "Pascal", "7": "Volta", "7.5": "Turing", "8": "Ampere", "8.9": "Ada",
    "9": "Hopper", "10": "Blackwell", "10.7": "Rubin", "11": "Blackwell", "12": "Blackwell",
}  # fmt: skip

# The chips TU116 and TU117, of compute capability 7.5 like those of RTX 20 and T4, but without Tensor Cores.
# NVIDIA, Turing GeForce GTX: GTX 16, MX450 and MX550, T400 to T2000 of the Quadro line, CMP 30HX.
_WITHOUT = re.compile(r"\b(GTX 16[0-9]{2}|MX[45]50|T(400|500|550|600|1000|1200|2000)|CMP 30HX)(?![0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """torch's global flags, right after import or as the calling program set them; None for one that it lacks."""

    matmul_tf32: bool | None = None
    cudnn_tf32: bool | None = None
    cudnn_enabled: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None
    deterministic_algorithms: bool | None = None
    anomaly_detection: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Precision by torch's flags. Only a bench shows the real one: environment variables override the flags."""

    flags: Flags | None = None
    defaults: Flags | None = None
    """The flags' defaults in this version of torch; None if the version is not a number."""
    api_conflict: str | None = None
    """torch's error message if its older and newer precision APIs contradict each other; None if they agree."""
    cpu_bfloat16: bool = False
    """The CPU has bfloat16 instructions (AVX512-BF16, AMX or Arm's) and does not have to emulate it."""


def tensor_core_dtypes(compute_capability: str | None, name: str = "") -> tuple[str, ...]:
    """The dtypes that a GPU's Tensor Cores multiply, by compute capability ("9.0") and name; empty if it has none."""
    number = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", compute_capability or "")
    capability = (int(number[1]), int(number[2])) if number else (0, 0)
    if capability == (7, 5) and _WITHOUT.search(name):
        return ()
    return tuple(dtype for dtype, since in _SINCE.items() if capability >= since)


def hardware_text(compute_capability: str | None, name: str) -> str:
    """A GPU's architecture and the dtypes of its Tensor Cores, in words; empty without a compute capability."""
    if not compute_capability:
        return ""
    dtypes = tensor_core_dtypes(compute_capability, name)
    *others, last = dtypes or ("",)
    parts = (
        _ARCHITECTURES.get(compute_capability) or _ARCHITECTURES.get(compute_capability.partition(".")[0]),
        f"Tensor Cores compute in {', '.join(others)}{' and ' if others else ''}{last}"
        if dtypes
        else "no Tensor Cores",
        None if "bfloat16" in dtypes else "torch emulates bfloat16",
    )
    return "; ".join(filter(None, parts))


def default_flags(torch_version: str) -> Flags | None:
    """The flags' defaults in a torch release; None for a version that is not a number.

    Source: PyTorch's CUDA notes, and read from the wheels of 2.1 to 2.15: since 1.12 TF32 is off for matmul and on for
    cuDNN; 1.7 to 1.11 had it on for both.
    """
    number = re.match(r"(\d+)\.(\d+)", torch_version)
    if number is None:
        return None
    return Flags(
        matmul_tf32=(1, 7) <= (int(number[1]), int(number[2])) < (1, 12),
        cudnn_tf32=True,
        cudnn_enabled=True,
        cudnn_benchmark=False,
        cudnn_deterministic=False,
        deterministic_algorithms=False,
        anomaly_detection=False,
    )


def read(host: Host, torch: Mapping[str, Any]) -> Precision:
    flags, version = torch.get("flags"), torch.get("torch")
    return Precision(
        flags=Flags(**flags) if flags else None,
        defaults=default_flags(version) if version else None,
        api_conflict=torch.get("api_conflict"),
        cpu_bfloat16=not _BFLOAT16_FLAGS.isdisjoint(host.read_or_empty("/proc/cpuinfo").split()),
    )
