"""Errors in the kernel's log of GPUs, NVSwitches, PCIe links, CPUs and memory, beyond Xid errors."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["nvswitch", "start_failed", "off_the_bus", "pcie", "machine_check", "memory"]
Grade = Literal["fatal", "uncorrected", "nonfatal", "corrected", "unknown"]


@dataclass(frozen=True, slots=True)
class KernelError:
    """A kind of error that the kernel or NVIDIA's driver has logged, at one place."""

    kind: Kind
    where: str | None
    """A PCI address, or the kernel's name of a CPU or memory controller; None if the log names no place."""
    grade: Grade
    """As the log calls it; `unknown` if it does not say whether the hardware corrected it."""
    number: int | None = None
    """An NVSwitch error's number (SXid) in NVIDIA's catalogue."""
    count: int = 0
    gpus: tuple[str, ...] = ()
    """The PCI addresses of the GPUs that a PCIe error concerns: the device itself, or those behind a bridge."""
    mended: bool = False
    """NVIDIA's driver has been loaded anew since, and it was an error of that driver."""


@dataclass(slots=True)
class _Message:
    error: KernelError
    times: int = 1
    echo: bool = False
    """It is a second line about an event for which the kernel usually logs another one."""
    by_nvidia: bool = False
    """NVIDIA's driver holds the PCI device that it is about."""


LOADED = "NVRM: loading NVIDIA UNIX"
"""The text of the kernel's message that NVIDIA's kernel module has been loaded."""
_LONGEST = 2000  # the kernel's own limit is 1024 characters and a prefix
_ADDRESS = r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_NAMED = re.compile(rf"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?{_ADDRESS}", re.IGNORECASE)
_SXID = re.compile(r"SXid \((?:PCI:)?([0-9a-f:.]{5,20})\): (\d{1,6})(?:, (Non-fatal|Fatal))?", re.IGNORECASE)
_SXID_GRADES: dict[str, Grade] = {"fatal": "fatal", "non-fatal": "nonfatal"}
_LINK = re.compile(r": (?:AER: |PCIe Bus Error: |can't recover|device has no AER-aware driver)")
_REPORT = re.compile(
    r"(?:AER: )?PCIe Bus Error: (?:severity=)?(Un)?correct\w+(?: \(((?:Non-)?Fatal)\))?", re.IGNORECASE
)
_RECEIVED = re.compile(
    r"AER: (?:Multiple )?(Un)?correct\w+(?: \(((?:Non-)?Fatal)\))? error (?:message )?received(?:: | from )?"
    rf"{_ADDRESS}?",
    re.IGNORECASE,
)
_GIVEN_UP = ("can't recover", "device has no AER-aware driver")
_CHECKED = re.compile(r"CPU (\d{1,5}): Machine Check(?: Exception)?: \S{1,20} Bank \d{1,4}: ([0-9a-f]{16})")
_UNCORRECTED_BIT = 1 << 61  # MCi_STATUS.UC
_CPU_GRADES: dict[str, Grade] = {
    "}[Hardware Error]: event severity: fatal": "fatal",  # without a number in braces: of the boot before
    "}[Hardware Error]: event severity: recoverable": "uncorrected",
    "}[Hardware Error]: event severity: corrected": "corrected",
    "[Hardware Error]: Uncorrected": "uncorrected",
    "[Hardware Error]: Corrected error": "corrected",
    "[Hardware Error]: Machine check events logged": "unknown",
    "Uncorrected hardware memory error": "uncorrected",
}
_EDAC = re.compile(r"EDAC (MC\d{1,4}): (?:(\d{1,9}) )?(CE|UE) ")


def _messages(lines: Iterable[str]) -> Iterator[_Message | None]:
    """The errors that the lines of a kernel log tell of, in order, and None for each line that tells that NVIDIA's
    kernel module was loaded.
    """
    named: str | None = None
    for long_line in lines:
        line = long_line[:_LONGEST]
        if LOADED in line:
            yield None
        elif "NVRM:" in line:
            match = _NAMED.match(line, max(0, line.find("NVRM:")))
            named = match[1].lower() if match else named
            yield from _of_driver(line, named, its_own=bool(match))
        elif "SXid (" in line:
            yield from _of_switch(line)
        elif "AER" in line or "PCIe Bus Error" in line:
            yield from _of_link(line)
        elif "[Hardware Error]" in line or "hardware memory error" in line:
            yield from _of_cpu(line)
        elif "EDAC MC" in line:
            yield from _of_memory(line)


def _of_driver(line: str, named: str | None, *, its_own: bool) -> Iterator[_Message]:
    if "RmInitAdapter failed" in line or "rm_init_adapter failed" in line:
        where = named if its_own else None
        yield _Message(KernelError("start_failed", where, "fatal"), echo="rm_init_adapter" in line)
    elif "fallen off the bus" in line and "NVRM: Xid (" not in line and named:
        # The driver spreads this sentence over three lines, of which the first names the GPU.
        yield _Message(KernelError("off_the_bus", named, "fatal"))


def _of_switch(line: str) -> Iterator[_Message]:
    if match := _SXID.match(line, line.find("SXid (")):
        grade = _SXID_GRADES.get((match[3] or "").lower(), "unknown")
        yield _Message(KernelError("nvswitch", match[1].lower(), grade, int(match[2])))


def _of_link(line: str) -> Iterator[_Message]:
    """The kernel's PCIe error reporting begins with the driver and address of the device that reports."""
    if not (colon := _LINK.search(line)):
        return
    said, words = line[colon.start() + 2 :], line[: colon.start()].rpartition(";")[2].split()
    if len(words) < 2 or not re.fullmatch(_ADDRESS, words[-1]):
        return
    where, nvidia = words[-1], words[-2].startswith("nvidia")
    if match := _REPORT.match(said):
        yield _Message(KernelError("pcie", where, _link_grade(match)), by_nvidia=nvidia)
    elif match := _RECEIVED.match(said):
        source = match[3] or where
        yield _Message(KernelError("pcie", source, _link_grade(match)), echo=True, by_nvidia=nvidia and source == where)
    elif said.removeprefix("AER: ").startswith(_GIVEN_UP):
        yield _Message(KernelError("pcie", where, "uncorrected"), echo=True, by_nvidia=nvidia)


def _link_grade(match: re.Match[str]) -> Grade:
    if not match[1]:
        return "corrected"
    return "fatal" if (match[2] or "").lower() == "fatal" else "uncorrected"


def _of_cpu(line: str) -> Iterator[_Message]:
    if match := _CHECKED.match(line.partition("[Hardware Error]: ")[2]):
        grade: Grade = "uncorrected" if int(match[2], 16) & _UNCORRECTED_BIT else "corrected"
        yield _Message(KernelError("machine_check", f"CPU {int(match[1])}", grade))
        return
    called = next((grade for words, grade in _CPU_GRADES.items() if words in line), None)
    if called:
        yield _Message(KernelError("machine_check", None, called))


def _of_memory(line: str) -> Iterator[_Message]:
    if match := _EDAC.match(line, line.find("EDAC MC")):
        grade: Grade = "uncorrected" if match[3] == "UE" else "corrected"
        yield _Message(KernelError("memory", match[1], grade), times=int(match[2] or 1))


OF_THE_DRIVER = ("nvswitch", "start_failed", "off_the_bus")
"""The kinds of errors that NVIDIA's driver logs; it starts afresh when it is loaded anew."""


@dataclass(slots=True)
class _Tally:
    times: int = 0
    echoes: int = 0
    place: int = 0
    """Where the latest message is among all of them."""


def read(lines: Iterable[str], gpus_at: Callable[[str], tuple[str, ...]]) -> tuple[KernelError, ...]:
    """The errors in the lines, without other devices' on PCIe; `gpus_at` gives the GPUs at or behind a PCI address."""
    tallies: dict[KernelError, _Tally] = {}
    nvidia: set[str | None] = set()
    loaded = -1
    for place, message in enumerate(_messages(lines)):
        if message is None:
            loaded = place
            continue
        tally = tallies.setdefault(message.error, _Tally())
        tally.place = place
        tally.times += 0 if message.echo else message.times
        tally.echoes += message.times if message.echo else 0
        nvidia |= {message.error.where} if message.by_nvidia else set()
    errors = []
    for error in _explained(tallies):
        gpus = _gpus(error, nvidia, gpus_at)
        tally = tallies[error]
        if gpus or error.kind != "pcie":
            count, mended = max(tally.times, tally.echoes), error.kind in OF_THE_DRIVER and tally.place < loaded
            errors.append(replace(error, count=count, gpus=gpus, mended=mended))
    return tuple(errors)


def _gpus(error: KernelError, nvidia: set[str | None], gpus_at: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    if error.kind != "pcie" or error.where is None:
        return ()
    return gpus_at(error.where) or ((error.where,) if error.where in nvidia else ())


def _explained(errors: Collection[KernelError]) -> list[KernelError]:
    """The errors without those of which others tell more: where it was, or whether the hardware corrected it."""
    known = {(error.kind, error.where, error.number) for error in errors if error.grade != "unknown"}
    kinds = {
        error.kind for error in errors if error.grade != "unknown" and (error.where or error.kind != "start_failed")
    }

    def told_better(error: KernelError) -> bool:
        if error.kind == "start_failed":
            return error.where is None and "start_failed" in kinds
        if error.kind == "machine_check":
            return error.grade == "unknown" and bool(kinds & {"machine_check", "memory"})
        return error.grade == "unknown" and (error.kind, error.where, error.number) in known

    return [error for error in errors if not told_better(error)]
