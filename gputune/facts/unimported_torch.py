"""torch, without importing it in this process: asked in a child process, or read from its installed files."""

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gputune.facts.gap import Gaps
from gputune.host import Host
from gputune.resources.unreadable import Cause

TORCH_SCRIPT = Path(__file__).with_name("_torch_answers.py")


def ask_torch(host: Host, gaps: Gaps) -> dict[str, Any]:
    """The answers of `host.python` about its torch, from a child process; empty, with a gap, if there are none."""
    answers = gaps.read("libraries.torch", lambda: host.ask_python(TORCH_SCRIPT)) or {}
    for name, error in answers.get("gaps", {}).items():
        importing = "import torch: " if name == "torch" else ""
        gaps.add(f"libraries.{name}", f"{importing}{error['type']}: {error['message']}", _cause(name, error))
    return answers


def _cause(name: str, error: Mapping[str, Any]) -> Cause | None:
    if name == "torch":
        absent = (error["type"], error["name"]) == ("ModuleNotFoundError", "torch")
        return "not_installed" if absent else "import_failed"
    # torch's words for error 802
    return "fabric_not_ready" if "system not yet initialized" in error["message"] else None


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
