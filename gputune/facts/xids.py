"""The Xid errors in the kernel's log: those of NVIDIA's driver about a GPU, by their numbers in NVIDIA's catalogue."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gputune.facts.health import RECOVERY_ACTIONS
from gputune.facts.kernel_messages import LOADED

RECOVERY = 154
"""The Xid that says what has to be done for the GPU to work again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """A kind of error that the driver has logged about a GPU."""

    number: int
    address: str
    """The GPU's PCI address as the driver logs it: `0000:3b:00`."""
    count: int
    hours_ago: float | None = None
    """Hours since the latest such error; None if the log has no times."""
    recovery: str | None = None
    """The action that the driver asked for (Xid 154) at the time of the latest of these errors or later: one of
    `RECOVERY_ACTIONS`, or else the driver's own words; None if it asked for none."""
    nonfatal: bool = False
    """The driver calls all of them Nonfatal, as it does with some NVLink errors."""
    mended: bool = False
    """The log says so: nothing has to be done any more, or the driver was loaded anew."""


@dataclass(slots=True)
class _Tally:
    hours: list[float | None] = field(default_factory=list)
    fatal: bool = False
    line: int = 0
    """Where the latest one is in the log."""


_START = "NVRM: Xid ("
# Old drivers write no `PCI:`; some write the function's number, and MIG slices follow the address.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:]{5,20})(?:\.[0-7])?(?: [^)\n]{1,40})?\): (\d{1,6})")
_TO = re.compile(r"([0-9a-fA-F]{1,8}) \(([^)\n]{1,40})\)")


def read(lines: Iterable[str], uptime_hours: float | None) -> tuple[Xid, ...]:
    tallies: dict[tuple[int, str], _Tally] = {}
    actions: dict[str, tuple[int, str]] = {}
    loaded = -1
    for place, line in enumerate(lines):
        at = line.find(_START)
        if at >= 0 and (match := _XID.match(line, at)):
            number, address = int(match[2]), match[1].lower()
            tally = tallies.setdefault((number, address), _Tally())
            tally.hours.append(_hours_ago(line[:at], uptime_hours))
            tally.line = place
            tally.fatal |= " Nonfatal " not in line
            if number == RECOVERY and (action := _recovery(line)):
                actions[address] = place, action
        elif LOADED in line:
            loaded = place
    found = []
    for (number, address), tally in sorted(tallies.items(), key=lambda item: item[0]):
        place, action = actions.get(address, (-1, None))
        recovery = action if place >= tally.line else None
        xid = Xid(
            number=number,
            address=address,
            count=len(tally.hours),
            hours_ago=None if tally.hours[-1] is None else round(tally.hours[-1], 1),
            recovery=recovery,
            nonfatal=not tally.fatal,
            mended=recovery == "none" or loaded > tally.line,
        )
        found.append(xid)
    return tuple(found)


def _recovery(line: str) -> str | None:
    """The action in `changed from 0x0 (None) to 0x2 (Node Reboot Required)`, by its number: drivers' words differ."""
    match = _TO.match(line.rpartition(" to 0x")[2])
    if not match:
        return None
    number = int(match[1], 16)
    return RECOVERY_ACTIONS[number] if number < len(RECOVERY_ACTIONS) else match[2]


def _hours_ago(prefix: str, uptime_hours: float | None) -> float | None:
    """A record of /dev/kmsg begins with priority, sequence number, microseconds since boot, flags, and a semicolon."""
    match = re.match(r"\d{1,9},\d{1,18},(\d{1,18}),[^;]*;", prefix)
    return max(0.0, uptime_hours - int(match[1]) / 3.6e9) if match and uptime_hours is not None else None
