"""Tables for a terminal, readable at 80 columns. rich leaves colours out where NO_COLOR is set or nobody looks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from gputune.checks import Finding, Severity
from gputune.facts import cpu_list
from gputune.facts.gap import Gap
from gputune.host import NOT_SUPPORTED
from gputune.measurement import Measurement
from gputune.profile import Fingerprint, Profile
from gputune.settings import Value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gputune.runtime.environment import Applied

_STYLES: dict[Severity, str] = {
    "ERROR": "bold red",
    "WARNING": "yellow",
    "UNKNOWN": "magenta",
    "OK": "green",
    "NOT_APPLICABLE": "dim",
}
_WORST_FIRST: tuple[Severity, ...] = ("ERROR", "WARNING", "UNKNOWN", "OK", "NOT_APPLICABLE")
_WORDS: dict[Severity, tuple[str, str]] = {
    "ERROR": ("error", "errors"),
    "WARNING": ("warning", "warnings"),
    "UNKNOWN": ("unknown", "unknown"),
    "OK": ("ok", "ok"),
    "NOT_APPLICABLE": ("not applicable", "not applicable"),
}
_NVIDIA_SMI = re.compile(r"(?<=nvidia-smi -i )\S+")  # the GPU that a remedy names
_FIRST = 22  # the longest name of a check, so that the tables of one report stand under each other


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
    print_gaps(unsaid(profile.gaps, profile.findings), stream)


def print_findings(findings: Iterable[Finding], stream: IO[str], least: Severity = "NOT_APPLICABLE") -> None:
    """The findings from `least` up, the worst first, a table for each severity, each finding with its remedy.

    What several GPUs, or several checks, say in the same words is said once.
    """
    shown = [one for one in findings if _WORST_FIRST.index(one.severity) <= _WORST_FIRST.index(least)]
    console = _console(stream)
    for severity in _WORST_FIRST:
        rows = _merged([finding for finding in shown if finding.severity == severity])
        if not rows:
            continue
        table = _table(_WORDS[severity][0], "", style=_STYLES[severity])
        for names, message, remedy in rows:
            _add(table, names, message + (f"\n-> {remedy}" if remedy else ""))
        console.print(table)


def _merged(findings: Sequence[Finding]) -> list[tuple[str, str, str | None]]:
    """Names, message and remedy of what is said in the same words: by one check of several GPUs, then by several checks."""
    of_gpus: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        of_gpus.setdefault((one.check, one.message, _NVIDIA_SMI.sub("", one.remedy or "")), []).append(one)
    of_checks: dict[tuple[str, str | None], list[str]] = {}
    for (check, message, _), same in of_gpus.items():
        said = (f"{_gpus([one.subject or '' for one in same])}{message}", _remedy([one.remedy or "" for one in same]))
        of_checks.setdefault(said, []).append(check)
    return [_row(checks, message, remedy) for (message, remedy), checks in of_checks.items()]


def _remedy(remedies: Sequence[str]) -> str | None:
    """One for several GPUs: nvidia-smi takes a list of them."""
    gpus = list(dict.fromkeys(found for remedy in remedies for found in _NVIDIA_SMI.findall(remedy)))
    return _NVIDIA_SMI.sub(",".join(gpus), remedies[0]) or None


def _row(checks: Sequence[str], message: str, remedy: str | None) -> tuple[str, str, str | None]:
    if len(checks) == 1:
        return checks[0], message, remedy
    return f"{len(checks)} checks", f"{message} ({', '.join(checks)})", remedy


def _gpus(subjects: Sequence[str]) -> str:
    """`GPU 0-3,7: ` for the GPUs among the subjects; other subjects are in the message."""
    numbers = [int(subject.removeprefix("GPU ")) for subject in subjects if re.fullmatch(r"GPU \d{1,4}", subject)]
    return f"GPU {cpu_list.text(numbers)}: " if numbers else ""


def summary(findings: Sequence[Finding]) -> str:
    """How many checks ended how, by the worst that each found."""
    by_check: dict[str, list[Severity]] = {}
    for finding in findings:
        by_check.setdefault(finding.check, []).append(finding.severity)
    worst = [min(severities, key=_WORST_FIRST.index) for severities in by_check.values()]
    parts = [_count(worst.count(severity), _WORDS[severity]) for severity in _WORST_FIRST if severity in worst]
    return f"{_count(len(worst), ('check', 'checks'))}: {', '.join(parts) or 'none asked'}"


def _count(number: int, words: tuple[str, str]) -> str:
    return f"{number} {words[number != 1]}"


def unsaid(gaps: Sequence[Gap], findings: Sequence[Finding]) -> list[Gap]:
    """The gaps whose reason no finding gives, but for what NVML does not support: the checks say what that means."""
    said = "\n".join(finding.message for finding in findings)
    return [gap for gap in gaps if gap.reason != NOT_SUPPORTED and gap.reason not in said]


def print_gaps(gaps: Sequence[Gap], stream: IO[str]) -> None:
    """What could not be read or measured; what has one reason stands together."""
    if not gaps:
        return
    table = _table("not known", "why")
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        reasons.setdefault(gap.reason, []).append(gap.fact)
    for reason, facts in reasons.items():
        _add(table, "\n".join(facts), reason)
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


def _table(*columns: str, style: str = "") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(
            column,
            header_style=style or "bold",
            overflow="fold",
            no_wrap=number == 0,
            min_width=_FIRST if style and number == 0 else None,
            max_width=14 if column == "value" else None,
        )
    return table


def _add(table: Table, *cells: str) -> None:
    """A row of plain text."""
    table.add_row(*(_plain(cell) for cell in cells))


def _plain(text: str) -> Any:
    """Text in which brackets are brackets and nothing steers the terminal: some of it comes from a file."""
    from rich.text import Text

    return Text("".join(char if char.isprintable() or char == "\n" else "?" for char in text))


def _console(stream: IO[str]) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False)
