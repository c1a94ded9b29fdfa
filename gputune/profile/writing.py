"""Writing a profile: YAML or JSON that reads well, whole or not at all."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from gputune.errors import MeasureError
from gputune.facts.precision import hardware_text
from gputune.host import atomic
from gputune.profile import limits, strict_text
from gputune.profile.document import Profile

_SMALLER = "measure less, as with fewer --shapes"


def dump(profile: Profile) -> str:
    """The profile as YAML, one line for each measurement, finding and gap. Raises MeasureError if it is too large."""
    return _bounded("".join(_sections(_plain(profile))))


def dump_json(profile: Profile) -> str:
    """The profile as JSON, one line for each setting and row. Raises MeasureError if it is too large."""
    return _bounded(f"{_json_parts(_plain(profile))}\n")


def save(profile: Profile, path: str | Path, *, replace: bool = True, follow: bool = True) -> None:
    """Write the file whole or not at all, as JSON if its name ends in .json. Raises MeasureError.
    Without `replace` an existing file stays; without `follow` a symbolic link is replaced itself.
    """
    target = Path(os.path.realpath(path)) if follow else Path(path)
    text = dump_json(profile) if Path(path).suffix == ".json" else dump(profile)
    try:
        if follow and target.exists() and not target.is_file():
            # Renaming would replace it.
            raise MeasureError(f"{path}: is not a regular file", "name another place with -o")
        atomic.write(target, text, replace=replace)
    except OSError as error:
        if isinstance(error, FileExistsError) and not replace:
            return
        remedy = f"make room there, or {'name another place with -o' if follow else 'set XDG_CACHE_HOME'}"
        raise MeasureError(f"{path}: not written: {error.strerror}", remedy) from None


def _plain(profile: Profile) -> dict[str, Any]:
    from gputune.host.shared_text import TEXTS, cleaner

    data: dict[str, Any] = _storable(cleaner().all(asdict(profile), TEXTS))
    if not data["programs"]:
        del data["programs"]  # earlier versions do not know it
    for holder, keys in _with_later_keys(data):
        for key in keys:
            if not holder[key]:
                del holder[key]  # nor these
    try:
        limits.check(data)
        limits.check_programs(data.get("programs", ()))
    except limits.Malformed as fault:
        raise MeasureError(f"the profile could not be read again: {fault}", _SMALLER) from None
    return data


def _with_later_keys(data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Mappings, and the keys that earlier versions of gputune do not know in them."""
    programs = data.get("programs", ())
    for choices in (data["settings"], *data["families"].values(), *(program["settings"] for program in programs)):
        yield from ((choice, ("unmeasured", "provisional", "since")) for choice in choices.values())
    for program in programs:
        yield program, ("dataset", "refused")
        yield from ((model, ("layers",)) for model in program["models"])


def _storable(value: Any) -> Any:
    """The data with texts that a file can hold: cut to the longest that is read, and without lone surrogates."""
    if isinstance(value, str):
        text = value.encode(errors="backslashreplace").decode()
        return text if len(text) <= limits.LONGEST else f"{text[: limits.LONGEST - 3]}..."
    if isinstance(value, dict):
        return {_storable(key): _storable(one) for key, one in value.items()}
    return tuple(map(_storable, value)) if isinstance(value, list | tuple) else value


def _bounded(text: str) -> str:
    size = len(text.encode())
    if size > limits.MOST_BYTES:
        most = limits.MOST_BYTES // 1024
        raise MeasureError(f"the profile takes {size // 1024} KiB, and {most} KiB is the most", _SMALLER)
    return text


def _json_parts(data: dict[str, Any], indent: str = "") -> str:
    """A mapping whose values are parts: the profile, or (indented) one of its programs."""
    parts = (f"{indent}  {_json(key)}: {_json_part(key, value, f'{indent}  ')}" for key, value in data.items())
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def _json_part(name: str, value: Any, indent: str) -> str:
    if isinstance(value, dict):
        opening, closing = "{}"
        lines = [f"{_json(key)}: {_json(one)}" for key, one in value.items()]
    elif isinstance(value, tuple):
        opening, closing = "[]"
        lines = [_json_parts(row, f"{indent}  ") if name == "programs" else _json(row) for row in value]
    else:
        return _json(value)
    return opening + ",".join(f"\n{indent}  {line}" for line in lines) + (f"\n{indent}" if lines else "") + closing


def _json(value: Any) -> str:
    """JSON on one line, with escapes for terminal controls."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # the base is chosen at run time
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, value: str) -> Any:
    """Quote what either this reader or a YAML 1.1 reader would take for something other than text."""
    quoted = strict_text.plain(value) != value
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'" if quoted else None)


def _number(dumper: Any, value: float) -> Any:
    """As JSON writes it, with the fraction without which a YAML 1.1 reader takes `1e-07` for text."""
    text = json.dumps(value)
    if "." not in text:
        text = text.replace("e", ".0e")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


class _OneLine(dict[str, Any]):
    """A mapping that is written on one line, wherever it stands."""


def _one_line(dumper: Any, value: _OneLine) -> Any:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)


_Dumper.add_representer(_OneLine, _one_line)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)


def _yaml(value: Any, flow: bool | None) -> str:
    """YAML in flow style, in blocks, or (None) both. A text with invisible characters is written with escapes."""

    def dumped(as_it_is: bool) -> str:
        text: str = yaml.dump(
            value, Dumper=_Dumper, default_flow_style=flow, sort_keys=False, width=10**6, allow_unicode=as_it_is
        )
        return text

    text = dumped(True)
    if not text.replace("\n", "").isprintable():
        text = dumped(False)
    return text.removesuffix("...\n")  # which ends a document that is one scalar


def _sections(data: dict[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if key in ("settings", "families"):
            yield _yaml({key: value}, flow=None)
        elif key == "programs":
            yield _yaml({key: [_program(one) for one in value]}, flow=None)
        elif isinstance(value, tuple) and value:
            yield f"{key}:\n"
            yield from (f"- {_yaml(_trimmed(row), flow=True)}" for row in value)
        else:
            yield f"{key}: {_yaml(value, flow=True)}"
            if key == "fingerprint" and (said := hardware_text(value["compute_capability"], value["gpu"] or "")):
                yield f"# {said}\n"


def _program(data: dict[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {name: data[name] for name in ("measurements", "gaps", "refused") if name in data}
    own: dict[str, Any] = {name: [_OneLine(_trimmed(row)) for row in found] for name, found in rows.items()}
    return data | {
        "fingerprint": _OneLine(data["fingerprint"]),
        "models": [_OneLine(one) for one in data["models"]],
        "by_numerics": {level: _OneLine(values) for level, values in data["by_numerics"].items()},
        **own,
    }


def _trimmed(row: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty: those keys have that as their default."""
    return {key: value for key, value in row.items() if value not in (None, {}, ())}
