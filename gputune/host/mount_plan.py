"""The mounts by which a program writes to no folder of the user's, planned from the kernel's list of mounts."""

import math
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gputune.host.overlay import Step, is_below, is_within

DEVICES = ("/dev", "/proc", "/sys")
"""Folders of the kernel's. What is mounted there stays as it is."""
RUN = "/run"
"""The folder of running services, in memory. Disks may be mounted below."""
KERNEL = (
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
    "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "sysfs", "tracefs",
)  # fmt: skip
"""File systems that hold no files of a user's."""


class Mount(NamedTuple):
    number: int
    parent: int
    point: str
    kind: str
    is_writable: bool


def mounts(text: str) -> list[Mount]:
    """The mounts that /proc/self/mountinfo names, and that no other mount hides, the outer ones first."""
    found = [_mount(line) for line in text.splitlines()]
    by_number = {one.number: one for one in found}

    def is_reached(one: Mount) -> bool:
        if any(o.parent == one.parent and one is not o and is_below(one.point, o.point) for o in found):
            return False
        parent = by_number.get(one.parent)
        return parent is None or parent is one or is_reached(parent)

    covered = {(one.parent, one.point) for one in found}
    seen = [one for one in found if (one.number, one.point) not in covered and is_reached(one)]
    return sorted(seen, key=lambda one: one.point.count("/") if one.point != "/" else 0)


def _mount(line: str) -> Mount:
    fields, _, rest = line.partition(" - ")
    number, parent, _, _, point, options, *_ = fields.split(" ")
    kind, _, whole = rest.split(" ", 2)
    plain = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)
    is_writable = "rw" in options.split(",") and "ro" not in whole.split(" ")[-1].split(",")
    return Mount(int(number), int(parent), plain, kind, is_writable)


class Disk:
    """The questions about the file system on which the plan rests."""

    def folders(self, path: str) -> list[str]:
        """The folders in a folder, without links; none where it cannot be read."""
        with suppress(OSError):
            return sorted(entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
        return []

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)  # noqa: PTH112 - False also for what lies below a closed folder, where Path may raise

    def is_file(self, path: str) -> bool:
        return os.path.isfile(path)  # noqa: PTH113 - as above

    def is_open(self, path: str) -> bool:
        """Whether something below the folder can be reached."""
        return os.access(path, os.X_OK)

    def is_writable(self, path: str) -> bool:
        return os.access(path, os.W_OK)

    def is_own(self, path: str) -> bool:
        status = Path(path).stat()
        return (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())


def plan(
    seen: Sequence[Mount], disk: Disk, unchanged: Iterable[str], *, is_root: bool, used: Iterable[str] = ()
) -> list[Step]:
    """The steps after which no folder can be written to, outer folders first. The last step makes the root folder
    itself read-only: it must be the last, since a folder that is mounted again takes the flags of the mount below it.

    Without root (in a namespace of users) no overlay can lie above a folder in which something is mounted: its folders
    are covered one by one, and what lies directly in it is read-only. Nor can a folder of another owner or group be
    copied, and so nothing below it: on the way to each path of `used` the first folder that can be written to then gets
    an overlay of its own.
    """
    kept = [*unchanged, *DEVICES]
    points = {one.point for one in seen}
    steps: list[Step] = []
    for mount in seen:
        if not _is_users(mount, kept) or not disk.is_folder(mount.point):
            steps += _left(mount, steps, kept, disk, is_root)
            continue
        tops = [mount.point] if mount.point != "/" else [top for top in disk.folders("/") if top not in points]
        for top in tops:
            if top not in kept:
                steps += [Step("overlay", top)] if is_root else _split(top, points, kept, disk)
    if not is_root:
        steps += _of_others(steps, kept, disk, used)
    if any(mount.point == "/" and mount.is_writable for mount in seen) and disk.is_writable("/"):
        steps.append(Step("read-only", "/"))
    return sorted(steps, key=lambda step: step.point.count("/") if step.point != "/" else math.inf)


def _is_users(mount: Mount, kept: Sequence[str]) -> bool:
    """Whether it may hold what the program must not write to."""
    is_temporary = is_within(mount.point, RUN) and mount.kind == "tmpfs"
    is_changed = mount.is_writable and mount.kind not in KERNEL and not is_temporary
    return is_changed and not any(is_within(mount.point, folder) for folder in kept)


def _left(mount: Mount, steps: Sequence[Step], kept: Sequence[str], disk: Disk, is_root: bool) -> list[Step]:
    """The steps for a mount that gets no overlay: a copy of a single file of the user's, a bind mount of one that an
    overlay would hide, or none.
    """
    if _is_users(mount, kept) and disk.is_file(mount.point) and disk.is_writable(mount.point):
        return [Step("copy", mount.point)]
    is_hidden = is_root and any(step.kind == "overlay" and is_below(mount.point, step.point) for step in steps)
    return [Step("bind", mount.point)] if is_hidden else []


def _split(folder: str, points: set[str], kept: Sequence[str], disk: Disk) -> list[Step]:
    if not disk.is_open(folder) or folder in kept:
        return []
    if not any(is_below(point, folder) for point in points):
        return [Step("overlay", folder)]
    steps = [Step("read-only", folder)] if disk.is_writable(folder) else []
    for below in disk.folders(folder):
        if below not in points:
            steps += _split(below, points, kept, disk)
    return steps


def _of_others(steps: Sequence[Step], kept: Sequence[str], disk: Disk, used: Iterable[str]) -> list[Step]:
    covered = {step.point for step in steps if step.kind == "overlay"}
    found: dict[str, Step] = {}
    for path in used:
        folder, is_copied = "", True
        for part in path.split("/")[1:]:
            folder = f"{folder}/{part}"
            if folder in covered or not any(is_below(folder, one) for one in covered):
                continue
            if any(is_within(folder, one) for one in kept) or not disk.is_folder(folder):
                break
            is_copied = is_copied and disk.is_own(folder)
            if not is_copied and disk.is_writable(folder):
                found[folder], is_copied = Step("overlay", folder), True
    return list(found.values())


def paths(words: Iterable[str], here: str) -> list[str]:
    """The paths among the words of a command, as of `--output=runs/1`."""
    parts = [word.rpartition("=")[2] for word in words]
    return [os.path.normpath(Path(here) / part) for part in parts if "/" in part and "\0" not in part]
