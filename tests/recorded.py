"""Recorded machines: a `Host` that answers from a folder of `machines/` and never touches the real machine."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from gputune import checks, facts
from gputune.checks import Finding
from gputune.facts import Facts
from gputune.host import Host, Unreadable, nvml
from gputune.measurement import Measurement
from gputune.strict_types import convert

MACHINES = Path(__file__).with_name("machines")
ONE, EIGHT = "nvidia-h200-x1", "nvidia-h200-x8"
NOT_SUPPORTED = "NVML: Not Supported"
"""NVML's answer about what this hardware or driver does not have."""
UNSUPPORTED = {"unreadable": NOT_SUPPORTED}
UNREAD = {"unreadable": "NVML: Unknown Error"}
LATER: dict[str, Any] = {
    "DefaultEccMode": [1],
    "DisplayActive": 0,
    "FieldValues:[230]": [{"fieldId": 230, "valueType": 1, "nvmlReturn": 0, "value": {"dVal": 0.0, "uiVal": 0}}],
    "GraphicsRunningProcesses": [],
    "GspFirmwareVersion": "580.159.04",
    "NumGpuCores": 16896,
    "VbiosVersion": "96.00.DA.00.0C",
}
"""What calls that the recordings lack answer on a GPU of the same chip and driver branch, an H100."""
NVML_ERRORS = {text: name for name, (text, _) in nvml.ERRORS.items()}


class RecordedHost(Host):
    """`machines/<folder>/answers.json`, with overrides.

    `environ` and `files` replace some of the recorded ones (None removes one), `torch` some of torch's answers, and
    `gpu` some of NVML's about the GPU of `gpu_index`; `nvml` and `torch` may also be an `Unreadable` to raise, and
    `nvml` any object with NVML's three methods. Every folder is writable except those below one of `closed`, and every
    device can be opened except those `denied`. Every file system has `space` bytes free. Its CPUs are idle, on
    a clock that goes on by a second with each look. gputune runs under `own_python`, and the `python` on the path
    answers `where` its torch is.
    """

    def __init__(self, folder: str = "nvidia-h200-x1", **overrides: Any) -> None:
        answers = json.loads((MACHINES / folder / "answers.json").read_text())
        super().__init__(root="/nonexistent", environ=_over(answers["env"], overrides.get("environ")), python="python")
        self.cpus = overrides.get("affinity", answers["affinity"])
        idle = {"/proc/stat": "".join(f"cpu{cpu} 0 0 0 0 0 0 0 0 0 0\n" for cpu in self.cpus)}
        self.files: dict[str, str] = _over(idle | answers["files"], overrides.get("files"))
        self.shm = overrides.get("shm", answers["shm"])
        self.counts = answers["cpu_counts"]
        self.clock = 0.0
        self.architecture: str = overrides.get("architecture", "x86_64")
        self.who = overrides.get("user", answers["user"])
        self.closed = overrides.get("closed", ())
        self.space = overrides.get("space", 1 << 40)
        self.denied = overrides.get("denied", ())
        self.where = overrides.get("where", {"folder": None})
        for device in answers["nvml"].get("devices", []):
            device.update(LATER | device)
        self.nvml_answers = overrides.get("nvml", answers["nvml"])
        if "gpu" in overrides:
            self.nvml_answers["devices"][overrides.get("gpu_index", 0)].update(overrides["gpu"])
        torch = overrides.get("torch")
        self.own_python = overrides.get("own_python", answers["torch"]["executable"])
        self.torch = torch if isinstance(torch, Unreadable) else _torch(_over(answers["torch"], torch))

    def path(self, path: str) -> Path:
        raise AssertionError(f"a recorded machine has no {path}")

    def read(self, path: str) -> str:
        if path in self.files:
            return self.files[path]
        raise Unreadable(f"{path}: No such file or directory", "no_such_file")

    def exists(self, path: str) -> bool:
        return path in ("/root", "/tmp") or any((name + "/").startswith(path.rstrip("/") + "/") for name in self.files)

    def writable(self, folder: str) -> bool:
        return not any((folder + "/").startswith(closed) for closed in self.closed)

    def real(self, path: str) -> str:
        return path

    def names(self, folder: str) -> list[str]:
        inside = [name.removeprefix(folder + "/") for name in self.files if name.startswith(folder + "/")]
        return sorted({name.split("/")[0] for name in inside})

    def kernel_log(self) -> str:
        return self.read("/dev/kmsg")

    def which(self, command: str) -> str | None:
        folders = self.environ.get("PATH", "").split(":")
        return next((f"{folder}/{command}" for folder in folders if f"{folder}/{command}" in self.files), None)

    def forbidden(self, device: str) -> bool:
        return device in self.denied

    def user(self) -> tuple[int, str | None, str | None]:
        return self.who[0], self.who[1], self.who[2]

    def space_bytes(self, path: str) -> tuple[int, int]:
        if path != "/dev/shm":
            return self.space, self.space
        answer = os.statvfs_result(self.shm)
        return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize

    def monotonic(self) -> float:
        self.clock += 1.0
        return self.clock

    def own_cpu_seconds(self) -> float:
        return 0.0

    def affinity(self) -> frozenset[int]:
        return frozenset(self.cpus)

    def memory_bytes(self) -> int:
        return int(self.read("/proc/meminfo").split()[1]) * 1024

    def cpu_counts(self) -> tuple[int, int | None]:
        return self.counts[0], self.counts[1]

    def machine(self) -> str:
        return self.architecture

    def nvml(self) -> Any:
        answers = _known(self.nvml_answers)
        return RecordedNvml(answers) if isinstance(answers, dict) else answers

    def ask_python(
        self, script: Path, deadline_seconds: float = 120.0, python: str | None = None, **_: Any
    ) -> dict[str, Any]:
        answers: dict[str, Any] = _known(
            {"_torch_answers.py": self.torch, "_where_is_torch.py": self.where}[script.name]
        )
        return answers


class RecordedNvml:
    """Answers by call: `TotalEccErrors:1,0` is what `nvmlDeviceGetTotalEccErrors(handle, 1, 0)` answered."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def system(self, name: str) -> Any:
        return _known(self.answers[name])

    def count(self) -> int:
        return len(self.answers["devices"])

    def device(self, index: int, name: str, *args: Any) -> Any:
        call = f"{name}:{','.join(map(str, args))}" if args else name
        return _known(self.answers["devices"][index].get(call, {"unreadable": f"NVML: {call} was not recorded"}))


def facts_of(folder: str = "nvidia-h200-x1", **overrides: Any) -> Facts:
    """The facts of a recorded machine with these overrides of `RecordedHost`."""
    try:
        return _same_facts(json.dumps([folder, overrides]))
    except TypeError:  # an override that is an object
        return facts.read(RecordedHost(folder, **overrides), variables=checks.variables())


@lru_cache(maxsize=100)
def _same_facts(asked: str) -> Facts:
    """Many tests ask for the same machine, which takes milliseconds to read."""
    folder, overrides = json.loads(asked)
    return facts.read(RecordedHost(folder, **overrides), variables=checks.variables())


def fits_its_types(found: Any) -> bool:
    """Whether the facts, written as JSON and read strictly, stay the same."""
    return bool(convert(type(found), json.loads(json.dumps(asdict(found), allow_nan=False))) == found)


def found(check: Any, folder: str = "nvidia-h200-x1", measurements: Any = (), **overrides: Any) -> list[Finding]:
    """The findings of a check's module on a recorded machine with these overrides."""
    return list(check.check(facts_of(folder, **overrides), measurements))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A change of a recorded machine, and what a check finds on it. See `says`."""

    expected: str | Sequence[str]
    message: str | tuple[str, ...]
    remedy: str | tuple[str, ...]
    subject: Any
    gpu_index: int | None
    others: str
    machine: str
    measured: Any
    facts: Mapping[str, Any]
    overrides: dict[str, Any]

    def holds(self, check: Any) -> None:
        read = changed(facts_of(self.machine, **self.overrides), self.facts)
        findings = list(check.check(read, self.measured))
        if not isinstance(self.expected, str):
            assert [f"{one.severity} {one.subject or ''}".rstrip() for one in findings] == list(self.expected)
        elif self.gpu_index is None:
            assert [one.severity for one in findings] == [self.expected], findings
        else:
            assert {one.severity for one in findings if one.subject != f"GPU {self.gpu_index}"} == {self.others}
            findings = [one for one in findings if one.subject == f"GPU {self.gpu_index}"]
            assert [one.severity for one in findings] == [self.expected], findings
        assert any(self._fits(one) for one in findings), findings

    def _fits(self, one: Finding) -> bool:
        texts = [(part, one.message) for part in _parts(self.message)]
        texts += [(part, one.remedy or "") for part in _parts(self.remedy)]
        return all(_says(part, text) for part, text in texts) and self.subject in (..., one.subject)


def _says(part: str, text: str) -> bool:
    if part.startswith("="):
        return text == part[1:]
    return text.startswith(part[1:]) if part.startswith("^") else part in text


def _parts(parts: str | tuple[str, ...]) -> tuple[str, ...]:
    return (parts,) if isinstance(parts, str) else parts


def says(
    expected: str | Sequence[str],
    message: str | tuple[str, ...] = "",
    remedy: str | tuple[str, ...] = "",
    *,
    subject: Any = ...,
    of: int | None = None,
    others: str = "OK",
    machine: str | None = None,
    measured: Any = (),
    facts: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Case:
    """What a check says of a machine with these overrides, as for `RecordedHost`, and these `facts` by dotted name.

    `expected` is the severity of its only finding, or the severity and subject of each. `of` takes the eighth machine,
    puts `gpu` on that GPU, and expects `others` of all other GPUs. `message` and `remedy` are parts of a finding's
    texts, its beginning behind a `^`, or the whole text behind a `=`.
    """
    if of is not None:
        overrides["gpu_index"] = of
    name = machine or (ONE if of is None else EIGHT)
    return Case(
        expected=expected, message=message, remedy=remedy, subject=subject, gpu_index=of, others=others, machine=name,
        measured=measured, facts=facts or {}, overrides=overrides,
    )  # fmt: skip


def table(check: str, *tables: Mapping[str, Case]) -> Callable[[Case], None]:
    """A test of a check with one case for each row; a row's name is a sentence about it."""
    cases = {name: case for one in tables for name, case in one.items()}
    assert len(cases) == sum(map(len, tables)), "a name occurs twice"

    @pytest.mark.parametrize("case", cases.values(), ids=cases)
    def holds(case: Case) -> None:
        case.holds(checks.load(check))

    return holds


def changed(held: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass with other values by dotted name: `cpu.budget`, `gpus.0.name` for an item, `gpus.*.name` for all."""
    for path, value in values.items():
        held = _changed(held, path.split("."), value)
    return held


def _changed(held: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    first, *rest = path
    if isinstance(held, tuple):
        return tuple(_changed(one, rest, value) if first in ("*", str(n)) else one for n, one in enumerate(held))
    return replace(held, **{first: _changed(getattr(held, first), rest, value)})


def load(device: str = "cuda:0", **conditions: float) -> Measurement:
    """A measurement of a probe, taken under these conditions."""
    return Measurement(
        bench="precision", metric="throughput", unit="TFLOP/s", samples=(100.0,) * 12, params={}, device=device,
        conditions=conditions,
    )  # fmt: skip


def _known(answer: Any) -> Any:
    if isinstance(answer, Unreadable):
        raise answer
    if isinstance(answer, dict) and "unreadable" in answer:
        text = answer["unreadable"].removeprefix("NVML: ")
        raise nvml.error(NVML_ERRORS.get(text, ""), text)
    return answer


def _torch(answers: dict[str, Any]) -> dict[str, Any]:
    """torch's answers; a gap may be given as `Type: message`."""
    return {**answers, "gaps": {fact: _error(gap) for fact, gap in answers["gaps"].items()}}


def _error(gap: str | dict[str, str | None]) -> dict[str, str | None]:
    if isinstance(gap, dict):
        return gap
    kind, _, message = gap.rpartition(": ")
    return {"type": kind or "Exception", "name": None, "message": message}


def _over(recorded: dict[str, Any], laid: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in {**recorded, **(laid or {})}.items() if value is not None}
