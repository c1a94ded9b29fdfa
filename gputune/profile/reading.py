"""Reading a profile strictly: whatever is wrong is one line with the file, the key and the remedy."""

import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gputune import knobs
from gputune.errors import ProfileError
from gputune.host import trust
from gputune.host.stderr import say
from gputune.measurement import MORE_LOOKS
from gputune.profile import compatibility, limits, strict_text
from gputune.profile.document import SCHEMA, Profile
from gputune.resources.printable import printable, quoted
from gputune.strict_types import Mismatch, convert
from gputune.version import __version__

MOST_FAMILIES = 64

_CORRECT = "correct it, or write another one with: gputune probe -o new.yaml"
_NAME = "name an existing profile, or write one with: gputune probe -o profile.yaml"


class Fault(Exception):
    """A fault in a text, and the remedy; `load` adds the file's name."""

    def __init__(self, message: str, remedy: str = _CORRECT) -> None:
        super().__init__(message)
        self.remedy = remedy


def load(path: str | Path, tell: Callable[[str], None] = say) -> Profile:
    """Read a profile, YAML or JSON. Raises ProfileError. `tell` gets a line if parts of a newer file were left out."""
    return _read(path, tell)[0]


def checked_text(path: str | Path) -> str:
    """The text of a file that was read as a profile, not read again: it may have changed. Raises as `load` does."""
    return _read(path, say)[1].decode()


def _read(path: str | Path, tell: Callable[[str], None]) -> tuple[Profile, bytes]:
    if not str(path).strip():
        raise ProfileError("PROFILE is empty", _NAME)
    try:
        content = _bytes(Path(path))
        return parse(content, lambda line: tell(f"{path}: {_shown(line)}")), content
    except Fault as fault:
        raise ProfileError(f"{path}: {_shown(str(fault))}", fault.remedy) from None


def _shown(text: str) -> str:
    """A message that quotes a file: short, on one line and without terminal escapes."""
    text = printable(text)
    return text if len(text) <= 400 else f"{text[:400]}..."


def parse(text: bytes, tell: Callable[[str], None] = say) -> Profile:
    """A profile from the bytes of its file; `tell` as for `load`. Raises Fault."""
    data = _mapping(text)
    _check_schema(data)
    compatibility.drop_retired(data)
    skipped = compatibility.drop_unknown(data) if _is_newer(data) else []
    _check_sizes(data)
    _check_settings(data)
    try:
        profile = compatibility.completed(convert(Profile, data))
        limits.check_programs([asdict(program) for program in profile.programs])
    except (Mismatch, limits.Malformed) as fault:
        raise Fault(str(fault)) from None
    if skipped:
        names = compatibility.summary(skipped)
        tell(f"was written by gputune {profile.gputune}, and this is {__version__}: skipped {names}")
    return profile


def _bytes(path: Path) -> bytes:
    """The content of a regular file within the limit that only its owner and group can write or replace.
    Links are followed first (Kubernetes ConfigMaps); checks are made on the open file, which nobody can exchange.
    """
    try:
        descriptor = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", closefd=True) as file:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise Fault("is not a regular file", _NAME)
            if mode & stat.S_IWOTH and not os.fstatvfs(descriptor).f_flag & os.ST_RDONLY:
                raise Fault("can be written by everybody", f"chmod o-w {quoted(str(path))}, if what it says is yours")
            if folder := trust.exchangeable(path):
                remedy = f"chmod o-w {quoted(folder)}, if what it says is yours"
                raise Fault(f"can be replaced by everybody, in {folder}", remedy)
            text = file.read(limits.MOST_BYTES + 1)
    except IsADirectoryError:
        raise Fault("is a directory", _NAME) from None
    except (OSError, ValueError) as error:
        raise Fault(f"cannot be read: {getattr(error, 'strerror', None) or error}", _NAME) from None
    if len(text) > limits.MOST_BYTES:
        raise Fault(f"is larger than {limits.MOST_BYTES // 1024} KiB, which no profile is")
    return text


def _mapping(text: bytes) -> dict[str, Any]:
    try:
        decoded = text.decode("utf-8-sig")
        data = strict_text.parse(decoded)
    except UnicodeDecodeError as error:
        raise Fault(f"is not UTF-8 text (byte {error.start})") from None
    except limits.Malformed as fault:
        raise Fault(str(fault)) from None
    if data is None:
        raise Fault("is empty")
    if not isinstance(data, dict):
        raise Fault("is not a profile: a mapping with the key 'schema' is expected")
    return data


def _check_schema(data: Mapping[str, Any]) -> None:
    number = data.get("schema")
    if type(number) is not int or number < SCHEMA:  # not isinstance: True is an int, and 1.0 equals 1
        given = f"{json.dumps(number, default=str)} given" if "schema" in data else "the key is missing"
        raise Fault(f"schema: the number {SCHEMA} expected, {given}")
    if number > SCHEMA:
        raise Fault(f"schema {number} was made by a newer gputune; this one reads {SCHEMA}", "upgrade gputune")


def _is_newer(data: Mapping[str, Any]) -> bool:
    version = data.get("gputune")
    if not isinstance(version, str):
        return False  # a fault, which the document's types name
    try:
        return compatibility.is_newer(version)
    except ValueError:
        raise Fault(f"gputune: a version such as {__version__} expected, {json.dumps(version[:40])} given") from None


def _check_sizes(data: dict[str, Any]) -> None:
    if len(compatibility.entries(data.get("families"))) > MOST_FAMILIES:
        raise Fault(f"families: at most {MOST_FAMILIES} kinds of network expected")
    for place, part in [((), data), *compatibility.programs(data)]:
        rows = part.get("measurements")
        for number, row in enumerate(rows if isinstance(rows, list) else []):
            samples = row.get("samples") if isinstance(row, dict) else None
            if isinstance(samples, list) and len(samples) > MORE_LOOKS[-1]:
                where = ".".join((*place, "measurements", str(number), "samples"))
                raise Fault(f"{where}: at most {MORE_LOOKS[-1]} expected, {len(samples)} given")


def _check_settings(data: dict[str, Any]) -> None:
    for place, group, check in compatibility.groups(data):
        for name, held in group.items():
            if name not in knobs.names():
                fault = f"{'.'.join((*place, name))}: there is no such setting"
                raise Fault(fault, "remove it; 'gputune explain' lists the settings")
            try:
                check(name, held)
            except Mismatch as mismatch:
                raise Fault(str(mismatch.below(*place, name))) from None
