"""Recorded machines: a `Host` that answers from a folder of `machines/` and touches nothing of the real one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gputune import facts
from gputune.facts import Facts
from gputune.host import Host, Unreadable

MACHINES = Path(__file__).with_name("machines")


class RecordedHost(Host):
    """`machines/<folder>/answers.json`, with overrides.

    `environ` and `files` are laid over the recorded ones (None takes one away), `torch` likewise over torch's answers;
    `nvml` and `torch` may also be an `Unreadable` to raise, and `nvml` any object with NVML's three methods.
    """

    def __init__(self, folder: str = "nvidia-h200-x1", **overrides: Any) -> None:
        answers = json.loads((MACHINES / folder / "answers.json").read_text())
        super().__init__(root="/nonexistent", environ=_over(answers["env"], overrides.get("environ")), python="python")
        self.files: dict[str, Any] = _over(answers["files"], overrides.get("files"))
        self.shm = overrides.get("shm", answers["shm"])
        self.cpus = overrides.get("affinity", answers["affinity"])
        self.nvml_answers = overrides.get("nvml", answers["nvml"])
        torch = overrides.get("torch")
        self.torch = torch if isinstance(torch, Unreadable) else _over(torch_answers(answers["torch"]), torch)

    def path(self, path: str) -> Path:
        raise AssertionError(f"a recorded machine has no {path}")

    def read(self, path: str) -> str:
        text = self.files.get(path, {"errno": 2})
        if isinstance(text, str):
            return text
        raise Unreadable(f"{path}: {os.strerror(text['errno'])}")

    def exists(self, path: str) -> bool:
        return any(isinstance(text, str) and (name + "/").startswith(path + "/") for name, text in self.files.items())

    def names(self, folder: str) -> list[str]:
        inside = [name.removeprefix(folder + "/") for name in self.files if name.startswith(folder + "/")]
        return sorted({name.split("/")[0] for name in inside})

    def space_bytes(self, path: str) -> tuple[int, int]:
        if path != "/dev/shm":
            raise Unreadable(f"{path}: not recorded")
        answer = os.statvfs_result(self.shm)
        return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize

    def affinity(self) -> frozenset[int]:
        return frozenset(self.cpus)

    def memory_bytes(self) -> int:
        return int(self.read("/proc/meminfo").split()[1]) * 1024

    def cpu_counts(self) -> tuple[int, int | None]:
        return int(self.read("/sys/devices/system/cpu/online").split("-")[1]) + 1, None

    def machine(self) -> str:
        return "x86_64"

    def nvml(self) -> Any:
        if isinstance(self.nvml_answers, dict):
            return RecordedNvml(_known(self.nvml_answers))
        return _known(self.nvml_answers)

    def ask_python(self, script: Path, deadline_seconds: float = 120.0) -> dict[str, Any]:
        if script.name != "_torch_answers.py":
            raise AssertionError(f"a recorded machine runs no {script.name}")
        return _known(self.torch)


class RecordedNvml:
    SYSTEM = {"DriverVersion": "driver", "NVMLVersion": "nvml", "CudaDriverVersion_v2": "cuda_driver"}
    CLOCKS = {"ClockInfo": "current", "MaxClockInfo": "max"}

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def system(self, name: str) -> Any:
        return _known(self.answers[self.SYSTEM[name]])

    def count(self) -> int:
        return self.answers["count"]

    def device(self, index: int, name: str, *args: Any) -> Any:
        answers = self.answers["devices"][index]
        if name in self.CLOCKS:
            return _known(answers["Clocks"][str(args[0])][self.CLOCKS[name]])
        if (name, args) == ("MemoryInfo", (0x02000028,)):
            return _known(answers["MemoryInfo_v2"])
        return _known(answers.get(name, {"NVMLError": f"{name} was not recorded"}))


def torch_answers(recorded: dict[str, Any]) -> dict[str, Any]:
    """What `gputune/facts/_torch_answers.py` answers where torch answered `recorded`."""
    answers = {"executable": "python", "gaps": {}, **recorded, "torch": recorded["version"]}
    if recorded["cuda"]:
        answers["nccl"] = ".".join(str(part) for part in recorded["nccl"])
    return answers


def facts_of(folder: str = "nvidia-h200-x1", **overrides: Any) -> Facts:
    return facts.read(RecordedHost(folder, **overrides))


def _known(answer: Any) -> Any:
    if isinstance(answer, Unreadable):
        raise answer
    if isinstance(answer, dict) and "NVMLError" in answer:
        raise Unreadable(f"NVML: {answer['NVMLError']}")
    return answer


def _over(recorded: dict[str, Any], laid: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in {**recorded, **(laid or {})}.items() if value is not None}
