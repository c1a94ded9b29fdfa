"""torch and the libraries under it, in the versions really loaded by the interpreter that was asked."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable

TORCH_SCRIPT = Path(__file__).with_name("_torch_answers.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """Versions as text; None where the library is absent or did not answer (then a gap says why)."""

    __pydantic_config__ = {"strict": True, "extra": "forbid"}

    python: str | None = None
    executable: str | None = None
    torch: str | None = None
    cuda: str | None = None
    """The CUDA that torch was built with; None for a build without."""
    architectures: tuple[str, ...] = ()
    """What torch's kernels were compiled for: sm_90, compute_90, ..."""
    cublas: str | None = None
    cublaslt: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    device_count: int | None = None
    """GPUs that torch sees; None for a build without CUDA, or where it did not answer."""
    torch_threads: int | None = None
    """torch.get_num_threads() as it starts here."""


def ask_torch(host: Host, gaps: Gaps) -> dict[str, Any]:
    """What the torch of `host.python` answers, from a child process; empty, with a gap, when it gives no answer."""
    answers = gaps.read("libraries.torch", lambda: host.ask_python(TORCH_SCRIPT)) or {}
    for name, reason in answers.get("gaps", {}).items():
        gaps.add(f"libraries.{name}", reason)
    return answers


def read(torch: Mapping[str, Any]) -> Libraries:
    devices = torch.get("devices")
    return Libraries(
        python=torch.get("python"),
        executable=torch.get("executable"),
        torch=torch.get("torch"),
        cuda=torch.get("cuda"),
        architectures=tuple(torch.get("arch_list") or ()),
        cublas=torch.get("cublas"),
        cublaslt=torch.get("cublaslt"),
        cudnn=cudnn_version(torch.get("cudnn")),
        nccl=torch.get("nccl"),
        device_count=None if devices is None else len(devices),
        torch_threads=torch.get("threads"),
    )


def cudnn_version(number: int | None) -> str | None:
    """CuDNN's number as text: 91900 is 9.19.0, and 8902, of the older scheme, 8.9.2."""
    if number is None:
        return None
    major = 10_000 if number >= 90_000 else 1_000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def installed_torch() -> tuple[str | None, str | None]:
    """Version and CUDA of the torch beside gputune, read from its files without importing it; None for what is not there.

    The package's metadata would not do: it lacks the local part (`+cu130`) that `torch.__version__` has.
    """
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None, None
    if spec is None or not spec.submodule_search_locations:
        return None, None
    try:
        text = Host().read(f"{spec.submodule_search_locations[0]}/version.py")
    except Unreadable:
        return None, None
    version = re.search(r"^__version__\s*=\s*'([^']+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
    return version.group(1) if version else None, cuda.group(1) if cuda else None
