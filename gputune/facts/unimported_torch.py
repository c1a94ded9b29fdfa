"""torch, without importing it in this process: asked in a child process, or read from its installed files. Where this
process has imported it, its modes are asked here.
"""

import importlib.util
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from gputune.facts.gap import Gaps
from gputune.facts.precision import Flags
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
    """A child's answers about torch; empty, with a gap, if there are none. `meanwhile` is as for `Host.ask_python`."""
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


def modes(torch: ModuleType) -> dict[str, Any]:
    """The answers about what a program may change, of the torch of this process as it is now."""
    from gputune.facts import _torch_answers as here

    answers: dict[str, Any] = {}
    readers: dict[str, Callable[[], Any]] = {
        "flags": lambda: here.flags(torch),
        "threads": lambda: torch.get_num_threads(),  # noqa: PLW0108 - a half torch may lack it
        "api_conflict": lambda: here.api_conflict(torch),
    }
    with warnings.catch_warnings():  # of torch's older getters, which are asked on purpose
        warnings.simplefilter("ignore")
        for name, reader in readers.items():
            with suppress(Exception):  # of a torch that is imported by half: then the child's answer stands
                answers[name] = reader()
    return held(answers)[0]


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
    """The versions of the installed torch and its CUDA; None if absent. The metadata lack the local part (`+cu130`)."""
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


MOST_DEVICES = 256
_MOST_PATHS = 4096
_LONGEST_PATH = 4096
_LONGEST_TEXT = 500
_LARGEST = 2**63 - 1

Converter = Callable[[Any], Any]


class OtherType(Exception):
    """A value that is not of the type which was asked for."""


def held(answers: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]], list[str]]:
    """The answers of their types, the interpreter's errors by name, and what was left out. Other names are ignored."""
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for name, convert in _ANSWERS.items():
        try:
            if name in answers:
                kept[name] = _or_none(convert)(answers[name])
        except OtherType:
            left_out.append(name)
    gaps, strange = _errors(answers.get("gaps"))
    return kept, gaps, left_out + strange


def path(value: Any) -> str:
    """A text of as many characters as a path may have; what is longer is cut off."""
    if not isinstance(value, str):
        raise OtherType
    return value[:_LONGEST_PATH]


def _text(value: Any) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in path(value)[:_LONGEST_TEXT])


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise OtherType
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise OtherType
    return value


def _or_none(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


def _list_of(convert: Converter, most: int) -> Converter:
    def converted(value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > most:
            raise OtherType
        return [convert(item) for item in value]

    return converted


def _record(**fields: Converter) -> Converter:
    """A converter of a dictionary to one with these keys; one that is missing counts as None."""

    def converted(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise OtherType
        return {name: convert(value.get(name)) for name, convert in fields.items()}

    return converted


def _errors(gaps: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The errors by the name of what could not be answered, and the names whose error is not of its type."""
    found, strange = {}, []
    for name, error in list(gaps.items())[: len(_ANSWERS)] if isinstance(gaps, dict) else ():
        try:
            found[_text(name)] = _ERROR(error)
        except OtherType:
            strange.append(_text(name))
    return found, strange if gaps is None or isinstance(gaps, dict) else ["gaps"]


_NUMBERS = dict.fromkeys(("major", "minor", "total_memory", "multi_processor_count"), _whole)
_DEVICE = _record(name=_text, uuid=_or_none(_text), **_NUMBERS)
_PATHS = dict.fromkeys(("compiler", "compiler_cxx", "include", "cache"), _or_none(path))
_COMPILE = _record(headers=_flag, triton=_or_none(_text), **_PATHS)
_ERROR = _record(type=_text, name=_or_none(_text), message=_text)
_ANSWERS: dict[str, Converter] = {
    **dict.fromkeys(("python", "torch", "cuda", "hip", "api_conflict", "nccl", "cublas", "cublaslt", "pynvml"), _text),
    **dict.fromkeys(("executable", "folder"), path),
    **dict.fromkeys(("threads", "cudnn"), _whole),
    **dict.fromkeys(("arch_list", "bundled", "loaded"), _list_of(path, _MOST_PATHS)),
    "flags": _record(**dict.fromkeys(Flags.__dataclass_fields__, _or_none(_flag))),
    "compile": _COMPILE,
    "devices": _list_of(_DEVICE, MOST_DEVICES),
}
