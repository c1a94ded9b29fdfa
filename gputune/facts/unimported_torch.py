"""torch, without importing it in this process: asked in a child process, or read from its installed files."""

import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gputune.facts._torch_types import held
from gputune.facts.gap import Gaps
from gputune.host import Host
from gputune.resources.unreadable import UNANSWERED, Cause, Unreadable

_CUDA_ERRORS: dict[str, Cause] = {
    "system not yet initialized": "fabric_not_ready",
    "stub library": "stub_library",
    "forward compatibility was attempted": "compat_unsupported",
    "unsupported display driver": "driver_combination",
    "unknown error": "uvm_broken",
    "no cuda-capable device": "no_device",
    "no cuda gpus are available": "no_device",
    "found no nvidia driver": "no_device",
    "libcuda": "no_device",
    "invalid device ordinal": "no_device",
}
"""CUDA's words for its errors, in lower case, as torch repeats them. Source: CUDA Runtime API, cudaGetErrorString."""

TORCH_SCRIPT = Path(__file__).with_name("_torch_answers.py")


def ask_torch(host: Host, gaps: Gaps, meanwhile: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """The answers of `host.python` about its torch, from a child process; empty, with a gap, if there are none.

    `meanwhile` is as for `Host.ask_python`.
    """
    answers = gaps.read("libraries.torch", lambda: _answers(host, meanwhile)) or {}
    kept, errors, left_out = held(answers)
    for name, error in errors.items():
        if error["type"] == UNANSWERED:
            gaps.add(f"libraries.{name}", error["message"], error["name"])
            continue
        importing = "import torch: " if name == "torch" else ""
        gaps.add(f"libraries.{name}", f"{importing}{error['type']}: {error['message']}", _cause(name, error))
    for name in left_out:
        gaps.add(f"libraries.{name}", f"{host.python} answered a value of another type for {name!r}")
    return kept


def _answers(host: Host, meanwhile: Callable[[], bool]) -> dict[str, Any]:
    """Raises Unreadable where the answer is not the script's, which says at least which Python runs it."""
    answers = host.ask_python(TORCH_SCRIPT, meanwhile=meanwhile)
    if not isinstance(answers, dict) or "python" not in answers:
        raise Unreadable(f"{host.python} answered something else", "exited")
    return answers


def _cause(name: str, error: Mapping[str, Any]) -> Cause | None:
    if name == "torch":
        absent = (error["type"], error["name"]) == ("ModuleNotFoundError", "torch")
        return "not_installed" if absent else "import_failed"
    said = f"{error['type']}: {error['message']}".lower()
    return next((cause for words, cause in _CUDA_ERRORS.items() if words in said), None)


def installed_torch() -> tuple[str | None, str | None]:
    """The version of the torch beside gputune, and of its CUDA, read from its files; None if absent.

    The package's metadata would not do: its version lacks the local part (`+cu130`) of `torch.__version__`.
    """
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None, None
    if spec is None or not spec.submodule_search_locations:
        return None, None
    text = Host().read_or_empty(f"{spec.submodule_search_locations[0]}/version.py")
    version = re.search(r"^__version__\s*=\s*'([^']+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=]*=\s*'([^']+)'", text, re.MULTILINE)
    return version.group(1) if version else None, cuda.group(1) if cuda else None
