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

_LIBRARY = re.compile(r"lib(cublas|cublasLt|cudnn)\.so\.\d+")
"""As torch asks for them, by major version."""

TORCH_SCRIPT = Path(__file__).with_name("_torch_answers.py")
WHERE_SCRIPT = Path(__file__).with_name("_where_is_torch.py")
_WHERE_DEADLINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """What torch.compile needs beside torch."""

    compiler: str | None = None
    """The C compiler that it would run: CC's, or gcc's, or clang's; None where there is none."""
    compiler_cxx: str | None = None
    """The C++ compiler likewise, for code that runs on the CPU."""
    headers: bool = False
    """Python.h is here."""
    include: str | None = None
    """Where it is looked for."""
    triton: str | None = None
    """Triton's version, or `installed` where it does not tell one."""
    cache: str | None = None
    """The folder for compiled code; None where torch fails to choose one."""
    cache_writable: bool = False
    """It, or where it does not exist yet the nearest folder above it that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """Versions as text; None where the library is absent or did not answer (then a gap says why)."""

    python: str | None = None
    executable: str | None = None
    torch: str | None = None
    cuda: str | None = None
    """The CUDA that torch was built with; None for a build without."""
    hip: str | None = None
    """The ROCm that torch was built with, for AMD's GPUs."""
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
    compile: Compile | None = None
    pynvml: str | None = None
    """The version of the deprecated package of that name; nvidia-ml-py brings a module of the same name."""
    loaded: tuple[str, ...] = ()
    """The files of cuBLAS and cuDNN that importing torch loaded."""
    bundled: tuple[str, ...] = ()
    """Those that torch's wheel brought."""
    searched: tuple[str, ...] = ()
    """Those that LD_LIBRARY_PATH offers, as it names them, but for the ones loaded."""
    torch_folder: str | None = None
    """Where the torch that was asked is installed."""
    shadow: str | None = None
    """A file or folder here that `import torch` would take instead, in programs that start here."""
    own_python: str | None = None
    """The interpreter that runs gputune."""
    path_python: str | None = None
    """The interpreter that `python` is here."""
    path_torch_folder: str | None = None
    """Where that one would find torch; None for nowhere."""


def ask_torch(host: Host, gaps: Gaps) -> dict[str, Any]:
    """What the torch of `host.python` answers, from a child process; empty, with a gap, when it gives no answer."""
    answers = gaps.read("libraries.torch", lambda: host.ask_python(TORCH_SCRIPT)) or {}
    for name, reason in answers.get("gaps", {}).items():
        gaps.add(f"libraries.{name}", reason)
    return answers


def read(host: Host, torch: Mapping[str, Any], gaps: Gaps) -> Libraries:
    devices, needs = torch.get("devices"), torch.get("compile")
    path_python = host.which("python") or host.which("python3")
    theirs = gaps.read("libraries.path_torch_folder", lambda: _torch_of(host, path_python)) if path_python else None
    return Libraries(
        python=torch.get("python"),
        executable=torch.get("executable"),
        torch=torch.get("torch"),
        cuda=torch.get("cuda"),
        hip=torch.get("hip"),
        architectures=tuple(torch.get("arch_list") or ()),
        cublas=torch.get("cublas"),
        cublaslt=torch.get("cublaslt"),
        cudnn=cudnn_version(torch.get("cudnn")),
        nccl=torch.get("nccl"),
        device_count=None if devices is None else len(devices),
        torch_threads=torch.get("threads"),
        compile=_compile(host, needs) if needs else None,
        pynvml=torch.get("pynvml"),
        loaded=tuple(torch.get("loaded") or ()),
        bundled=tuple(torch.get("bundled") or ()),
        searched=_searched(host, tuple(torch.get("loaded") or ())),
        torch_folder=torch.get("folder"),
        shadow=next((name for name in ("torch.py", "torch/__init__.py") if host.exists(name)), None),
        own_python=host.own_python,
        path_python=path_python,
        path_torch_folder=theirs,
    )


def _compile(host: Host, needs: Mapping[str, Any]) -> Compile:
    cache = needs.get("cache")
    return Compile(**needs, cache_writable=bool(cache) and host.writable(host.nearest(str(cache))))


def _searched(host: Host, loaded: tuple[str, ...]) -> tuple[str, ...]:
    folders = [folder.rstrip("/") for folder in host.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    paths = [f"{folder}/{name}" for folder in folders for name in host.names(folder) if _LIBRARY.fullmatch(name)]
    return tuple(path for path in paths if host.real(path) not in loaded)


def _torch_of(host: Host, python: str) -> str | None:
    """The folder of the torch that an interpreter would import, which it is asked for: it may be a shim, or a link."""
    found = host.ask_python(WHERE_SCRIPT, _WHERE_DEADLINE_SECONDS, python).get("folder")
    return str(found) if found else None


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
