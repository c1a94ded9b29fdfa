"""The errors in the kernel's log beyond Xid errors: those lines counted that are about the same error."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gputune.facts import kernel_messages
from gputune.facts.kernel_messages import Error, Grade, Kind

OF_THE_DRIVER = ("nvswitch", "start_failed", "off_the_bus")
"""The kinds of errors that NVIDIA's driver logs; it starts afresh when it is loaded anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelError:
    """A kind of error that the kernel or NVIDIA's driver has logged, at one place."""

    kind: Kind
    where: str | None
    """A PCI address, or the kernel's name of a CPU or memory controller; None if the log names no place."""
    grade: Grade
    """As the log calls it; `unknown` if it does not say whether the hardware corrected it."""
    number: int | None = None
    """An NVSwitch error's number (SXid) in NVIDIA's catalogue."""
    count: int
    gpus: tuple[str, ...] = ()
    """Of a PCIe error, the PCI addresses of the GPUs at that address or behind that bridge."""
    mended: bool = False
    """NVIDIA's driver has been loaded anew since, and it was an error of that driver."""


@dataclass(slots=True)
class _Tally:
    times: int = 0
    echoes: int = 0
    place: int = 0
    """Where the latest message is among all of them."""


def read(lines: Iterable[str], gpus_at: Callable[[str], tuple[str, ...]]) -> tuple[KernelError, ...]:
    """The errors in the log's lines; `gpus_at` gives the GPUs at a PCI address or behind that bridge.

    PCIe errors of other devices are left out.
    """
    tallies: dict[Error, _Tally] = {}
    nvidia: set[str | None] = set()
    loaded = -1
    for place, message in enumerate(kernel_messages.read(lines)):
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
            errors.append(KernelError(**error._asdict(), count=count, gpus=gpus, mended=mended))
    return tuple(errors)


def _gpus(error: Error, nvidia: set[str | None], gpus_at: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    if error.kind != "pcie" or error.where is None:
        return ()
    return gpus_at(error.where) or ((error.where,) if error.where in nvidia else ())


def _explained(errors: Collection[Error]) -> list[Error]:
    """The errors without those of which others tell more: where it was, or whether the hardware corrected it."""
    known = {(error.kind, error.where, error.number) for error in errors if error.grade != "unknown"}
    kinds = {
        error.kind for error in errors if error.grade != "unknown" and (error.where or error.kind != "start_failed")
    }

    def told_better(error: Error) -> bool:
        if error.kind == "start_failed":
            return error.where is None and "start_failed" in kinds
        if error.kind == "machine_check":
            return error.grade == "unknown" and bool(kinds & {"machine_check", "memory"})
        return error.grade == "unknown" and (error.kind, error.where, error.number) in known

    return [error for error in errors if not told_better(error)]
