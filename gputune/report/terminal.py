"""Tables for a terminal, readable at 80 columns. rich leaves colours out where NO_COLOR is set or nobody looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.profile import Fingerprint, Profile
from gputune.settings import Value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gputune.runtime.environment import Applied

_STYLES = {"ERROR": "bold red", "WARNING": "yellow", "UNKNOWN": "magenta", "OK": "green", "NOT_APPLICABLE": "dim"}
_WORST_FIRST = tuple(_STYLES)


def print_profile(profile: Profile, stream: IO[str]) -> None:
    """What was found, what is recommended and why, and what is missing."""
    console = _console(stream)
    console.print(_plain(_found(profile.fingerprint)))
    _print_speeds(console, profile.measurements)
    table = _table("setting", "value", "why")
    for name, choice in profile.settings.items():
        _add(table, name, value_text(choice.value), choice.reason)
    console.print(table)
    print_findings(profile.findings, stream, least="WARNING")
    print_gaps(profile.gaps, stream)


def print_findings(findings: Iterable[Finding], stream: IO[str], least: str = "NOT_APPLICABLE") -> None:
    """The findings from `least` up, the worst first, each with its remedy."""
    shown = [one for one in findings if _WORST_FIRST.index(one.severity) <= _WORST_FIRST.index(least)]
    if not shown:
        return
    table = _table("", "check", "finding")
    for finding in sorted(shown, key=lambda one: _WORST_FIRST.index(one.severity)):
        remedy = f"\n-> {finding.remedy}" if finding.remedy else ""
        severity = finding.severity.replace("_", " ").lower()
        _add(table, severity, finding.check, finding.message + remedy, style=_STYLES[finding.severity])
    _console(stream).print(table)


def print_gaps(gaps: Sequence[Gap], stream: IO[str]) -> None:
    """What could not be read or measured."""
    if not gaps:
        return
    table = _table("not known", "why")
    for gap in gaps:
        _add(table, gap.fact, gap.reason)
    _console(stream).print(table)


def print_applied(applied: Sequence[Applied], stream: IO[str]) -> None:
    """What was, or will be, done about each setting."""
    table = _table("setting", "value", "status", "why")
    for one in applied:
        _add(table, one.setting, "" if one.after is None else value_text(one.after), one.status, one.why)
    _console(stream).print(table)


def value_text(value: Value) -> str:
    """A setting's value in a word or two; none for torch's own choice."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "unknown"
    if value is None:
        return "none"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _found(fingerprint: Fingerprint) -> str:
    lines = []
    if fingerprint.gpu:
        count = f"{fingerprint.gpu_count} x " if fingerprint.gpu_count > 1 else ""
        lines.append(f"GPU    {count}{fingerprint.gpu}, {_known('compute capability', fingerprint.compute_capability)}, "
                     f"{_known('driver', fingerprint.driver)}")  # fmt: skip
    libraries = (("CUDA", fingerprint.cuda), ("cuBLAS", fingerprint.cublas), ("cuDNN", fingerprint.cudnn))
    versions = "".join(f", {name} {version}" for name, version in libraries if version)
    lines.append(f"torch  {fingerprint.torch}{versions}")
    lines.append(f"CPU    {fingerprint.cpu or 'unknown model'}, {fingerprint.cpu_budget} for this process")
    return "\n".join(lines)


def _known(name: str, value: str | None) -> str:
    return f"{name} {value or 'unknown'}"


def _print_speeds(console: Console, measurements: Sequence[Measurement]) -> None:
    """Matmul by dtype, beside full FP32."""
    rows = [row for row in measurements if row.bench == "precision"]
    speeds = {row.params.get("dtype"): row for row in rows if row.metric == "throughput"}
    errors = {row.params.get("dtype"): row for row in rows if row.metric == "relative_error"}
    if not speeds:
        return
    table = _table("matmul", "TFLOP/s", "to FP32", "relative error")
    base = speeds.get("float32")
    for dtype, row in speeds.items():
        ratio = row.against(base) if base else None
        error = errors.get(dtype)
        _add(
            table,
            str(dtype),
            f"{row.median:.3g}",
            f"{ratio.ratio:.3g}x" if ratio else "",
            f"{error.median:.1e}" if error else "",
        )
    console.print(table)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0, max_width=14 if column == "value" else None)
    return table


def _add(table: Table, *cells: str, style: str = "") -> None:
    """A row of plain text, its first cell in `style`."""
    table.add_row(*(_plain(cell, style if number == 0 else "") for number, cell in enumerate(cells)))


def _plain(text: str, style: str = "") -> Any:
    """Text in which brackets are brackets and nothing steers the terminal: some of it comes from a file."""
    from rich.text import Text

    return Text("".join(char if char.isprintable() or char == "\n" else "?" for char in text), style)


def _console(stream: IO[str]) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False)
