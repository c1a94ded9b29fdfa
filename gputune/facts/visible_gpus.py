"""The GPUs that CUDA_VISIBLE_DEVICES leaves visible, by CUDA's own rules (as observed on an H200)."""

import re
from collections.abc import Sequence

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
