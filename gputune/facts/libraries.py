"""torch and the libraries below it, in the versions that the interpreter which was asked has loaded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gputune.facts.gap import Gaps
from gputune.facts.unimported_torch import OtherType, path
from gputune.host import Host, Unreadable

_LIBRARY = re.compile(r"lib(cublas|cublasLt|cudnn)\.so\.\d+")
"""The names under which torch loads them, which end in the major version."""

_VERSIONS = ("python", "executable", "torch", "cuda", "hip", "cublas", "cublaslt", "nccl", "pynvml")
WHERE_SCRIPT = Path(__file__).with_name("_where_is_torch.py")
_WHERE_DEADLINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """The programs, files and folder that torch.compile needs in addition to torch."""

    compiler: str | None = None
    """The path of the C compiler that it would run: the one that CC names, or gcc, or clang; None if there is none."""
    compiler_cxx: str | None = None
    """The path of the C++ compiler that it would run, for code on the CPU: the one that CXX names, or g++."""
    headers: bool = False
    """Python.h is installed."""
    include: str | None = None
    """The folder in which Python.h is looked for."""
    triton: str | None = None
    """Triton's version, or `installed` if its package does not give one."""
    cache: str | None = None
    """The folder for compiled code; None if torch cannot choose one."""
    cache_writable: bool = False
    """The cache's folder, or the nearest existing folder above it, can be written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """Versions as text; None if the library is absent, or did not answer (then a gap says why)."""

    python: str | None = None
    executable: str | None = None
    torch: str | None = None
    cuda: str | None = None
    """The CUDA version that torch was built with; None for a build without CUDA."""
    hip: str | None = None
    """The ROCm version that torch was built with, for AMD's GPUs."""
    architectures: tuple[str, ...] = ()
    """The targets that torch's kernels were compiled for: sm_90, compute_90, ..."""
    cublas: str | None = None
    cublaslt: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    device_count: int | None = None
    """The number of GPUs that torch sees; None for a build without CUDA, or if torch did not answer."""
    torch_threads: int | None = None
    """torch.get_num_threads() right after import, or as the calling program has set it."""
    compile: Compile | None = None
    pynvml: str | None = None
    """The version of the deprecated package pynvml, not of the module pynvml, which nvidia-ml-py provides."""
    loaded: tuple[str, ...] = ()
    """The paths of the cuBLAS and cuDNN libraries that importing torch loaded."""
    bundled: tuple[str, ...] = ()
    """The paths of the cuBLAS and cuDNN libraries that were installed with torch's wheel."""
    searched: tuple[str, ...] = ()
    """The paths of other cuBLAS and cuDNN libraries in the folders of LD_LIBRARY_PATH."""
    cuda_drivers: tuple[str, ...] = ()
    """The paths libcuda.so* in the folders of LD_LIBRARY_PATH, in which the loader looks before the driver's own."""
    torch_folder: str | None = None
    """The folder of the torch that was asked."""
    shadow: str | None = None
    """The file that `import torch` finds first in programs started in this folder: torch.py or torch/__init__.py."""
    own_python: str | None = None
    """The interpreter that runs gputune."""
    path_python: str | None = None
    """The interpreter that the command `python` (or `python3`) starts."""
    path_torch_folder: str | None = None
    """The folder from which `path_python` would import torch; None if it has no torch."""


def read(host: Host, torch: Mapping[str, Any], gaps: Gaps) -> Libraries:
    devices, needs = torch.get("devices"), torch.get("compile")
    cache = str(needs.get("cache") or "") if needs else ""
    path_python = host.which("python") or host.which("python3")
    versions: dict[str, Any] = {name: torch.get(name) for name in _VERSIONS}
    loaded = tuple(torch.get("loaded") or ())
    folders = [folder.rstrip("/") for folder in host.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    on_path = [(f"{folder}/{name}", name) for folder in folders for name in host.names(folder)]
    copies = [path for path, name in on_path if _LIBRARY.fullmatch(name)]
    return Libraries(
        **versions,
        loaded=loaded,
        bundled=tuple(torch.get("bundled") or ()),
        architectures=tuple(torch.get("arch_list") or ()),
        cudnn=cudnn_version(torch.get("cudnn")),
        device_count=None if devices is None else len(devices),
        torch_threads=torch.get("threads"),
        compile=Compile(**needs, cache_writable=bool(cache) and host.writable(host.nearest(cache))) if needs else None,
        searched=tuple(path for path in copies if host.real(path) not in loaded),
        cuda_drivers=tuple(path for path, name in on_path if name.startswith("libcuda.so")),
        torch_folder=torch.get("folder"),
        shadow=next((name for name in ("torch.py", "torch/__init__.py") if host.exists(name)), None),
        own_python=host.own_python,
        path_python=path_python,
        path_torch_folder=gaps.read("libraries.path_torch_folder", lambda: _torch_of(host, path_python)),
    )


def _torch_of(host: Host, python: str | None) -> str | None:
    """The folder of an interpreter's torch. The interpreter is asked, since its path may be a shim or a link."""
    if python is None:
        return None
    found = host.ask_python(WHERE_SCRIPT, _WHERE_DEADLINE_SECONDS, python)
    try:
        return path(found.get("folder") or "") or None
    except (OtherType, AttributeError):
        raise Unreadable(f"{python} answered a value of another type for 'folder'") from None


def cudnn_version(number: int | None) -> str | None:
    """The version that cuDNN gives as a number: 91900 is 9.19.0, and 8902, in the scheme before cuDNN 9, is 8.9.2."""
    if number is None:
        return None
    major = 10_000 if number >= 90_000 else 1_000
    return f"{number // major}.{number % major // 100}.{number % 100}"
