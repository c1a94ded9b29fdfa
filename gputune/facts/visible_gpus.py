"""The GPUs that this process can reach: those whose device files it may open, and that CUDA_VISIBLE_DEVICES leaves."""

import re
from collections.abc import Sequence

from gputune.host import Host

VARIABLE = "CUDA_VISIBLE_DEVICES"
_PREFIX = "GPU-"


def visible(value: str, uuids: Sequence[str | None]) -> tuple[list[int], str | None]:
    """The GPUs that CUDA takes from a list, as indices into `uuids`, and why it takes no more (None if it takes all).

    CUDA stops at the first entry that names no GPU. It reads a number's leading digits, and accepts any beginning of a
    UUID that only one GPU has (`GPU-` in capitals, the digits in either case). A list holds numbers or UUIDs, not both;
    if it names a GPU twice, no GPU is visible. MIG slices are not handled: NVML does not list them as GPUs.
    """
    entries = [part.strip() for part in value.split(",")]
    by_uuid = entries[0].startswith(_PREFIX)
    taken: list[int] = []
    for place, entry in enumerate(entries):
        if not entry and place and place == len(entries) - 1:
            break
        index = _by_uuid(entry, uuids) if by_uuid else _by_number(entry, len(uuids))
        if index is None:
            return taken, f"{entry or 'an empty entry'} names no GPU here"
        if index in taken:
            return [], f"{entry} names one GPU twice"
        taken.append(index)
    return taken, None


def _by_number(entry: str, count: int) -> int | None:
    digits = re.match(r"[+-]?[0-9]{1,9}", entry)
    index = int(digits[0]) if digits else count
    return index if 0 <= index < count else None


def _by_uuid(entry: str, uuids: Sequence[str | None]) -> int | None:
    if not entry.startswith(_PREFIX) or entry == _PREFIX:
        return None
    matches = [index for index, uuid in enumerate(uuids) if uuid and uuid.lower().startswith(entry.lower())]
    return matches[0] if len(matches) == 1 else None


CONTROL, MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
COMMON = (CONTROL, MEMORY)


def device_files(host: Host) -> tuple[str, ...]:
    """The GPUs' device files that this process may open. A scheduler's cgroup may forbid others that are listed too."""
    return tuple(path for path in _listed(host) if path == "/dev/dxg" or not host.forbidden(path))


def forbidden_files(host: Host) -> tuple[str, ...]:
    """The GPUs' device files that are listed, and that permissions or a cgroup forbid this process to open."""
    return tuple(path for path in _listed(host) if path != "/dev/dxg" and host.forbidden(path))


def _listed(host: Host) -> list[str]:
    paths = (f"/dev/{name}" for name in host.names("/dev"))
    return [path for path in paths if path == "/dev/dxg" or re.fullmatch(r"/dev/nvidia\d+", path)]
