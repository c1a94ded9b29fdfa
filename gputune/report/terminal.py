"""Tables for a terminal, readable at 80 columns. rich omits colours with NO_COLOR, and outside a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from gputune.advice import Choice
from gputune.checks import Finding, Severity
from gputune.facts.gap import Gap
from gputune.facts.precision import hardware_text
from gputune.knobs import value_text
from gputune.profile import Fingerprint, Profile, Program
from gputune.report.answer import Answer
from gputune.report.answer_text import lines
from gputune.report.chart_list import groups
from gputune.report.fitting import told_apart
from gputune.report.programs import is_provisional, notes, why_nothing
from gputune.report.severities import WORST_FIRST, by_reason, merged, worst
from gputune.report.tables import add, console_of, draw, plain, table_of
from gputune.resources.printable import counted

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: dict[Severity, str] = {
    "ERROR": "bold red", "WARNING": "yellow", "UNKNOWN": "magenta", "OK": "green", "NOT_APPLICABLE": "dim",
}  # fmt: skip
_LONGEST_ENTRY = 24


def print_profile(profile: Profile, stream: IO[str], answer: Answer, *, every: bool = False, written: str = "") -> None:
    """The answer is the last screen. With `every`, all settings and why, the user's programs, the warnings, and the
    gaps stand before it. `written` is the file that was just written.
    """
    console = console_of(stream)
    console.print(plain(_machine(profile.fingerprint)))
    for chart in (chart for _, charts in groups(profile) for chart in charts):
        draw(console, chart)
    if every:
        console.print()
        _print_settings(console, profile)
        _print_programs(console, profile.programs)
        print_findings(profile.findings, stream, least="WARNING")
        print_gaps(unsaid(profile.gaps, profile.findings), stream)
    console.print()
    for line in lines(answer, console.width, written=written, stands_above=every):
        console.print(plain(line))


def _print_settings(console: Console, profile: Profile) -> None:
    table = table_of("setting", "value", "why")
    for name, choice in profile.settings.items():
        add(table, name, value_text(choice.value), choice.reason)
    console.print(table)
    if profile.families:
        table = table_of("family", "setting", "value", "why")
        for family, choices in profile.families.items():
            for name, choice in choices.items():
                add(table, family, name, value_text(choice.value), choice.reason)
        console.print()
        console.print(table)


def _print_programs(console: Console, programs: Sequence[Program]) -> None:
    if not programs:
        return
    table = table_of("program", "settings (speed against torch's default)")
    names = told_apart([one.entry for one in programs], _LONGEST_ENTRY)
    for one in programs:
        models = ", ".join(model.class_name for model in one.models) or "no model"
        values = ", ".join(_with_gain(setting, choice) for setting, choice in one.settings.items())
        probably = "probably " if is_provisional(one) else ""
        kind = "" if one.trains else ", which trains nothing"
        said = f"{models} in {counted(one.world_size, 'process')}{kind}: {probably}{values or why_nothing(one)}"
        add(table, names[one.entry], "\n".join([said, *notes(one)]))
    console.print()
    console.print(table)


def _with_gain(name: str, choice: Choice) -> str:
    gain = f" ({choice.gain:.2f})" if choice.gain else ""
    return f"{name} {value_text(choice.value)}{gain}"


def print_findings(findings: Sequence[Finding], stream: IO[str], least: Severity = "NOT_APPLICABLE") -> None:
    """Print the findings from severity `least` up, the worst first, a table for each severity; equal ones as one."""
    console = console_of(stream)
    for severity in WORST_FIRST[: WORST_FIRST.index(least) + 1]:
        rows = merged([finding for finding in findings if finding.severity == severity])
        if not rows:
            continue
        table = table_of(_word(severity), "", style=_STYLES[severity])
        for names, message, remedy in rows:
            add(table, names, message + (f"\n-> {_on_lines(remedy)}" if remedy else ""))
        console.print(table)


def _on_lines(remedy: str) -> str:
    """The command on a line of its own, to be copied without its comment, which may be wrapped."""
    command, mark, comment = remedy.partition("  # ")
    return f"{command}\n   # {comment}" if mark else remedy


def summary(findings: Sequence[Finding], least: Severity = "NOT_APPLICABLE") -> str:
    """One line: how many checks found what at worst, the names of those with a fault, and whether `least` hid some."""
    each = worst((finding.check, finding.severity) for finding in findings)
    names = {severity: [check for check, found in each.items() if found == severity] for severity in WORST_FIRST}
    parts = [_counted(severity, checks) for severity, checks in names.items() if checks]
    hidden = any(WORST_FIRST.index(one.severity) > WORST_FIRST.index(least) for one in findings)
    all_of_it = "; --all prints every answer" if hidden else ""
    return f"{counted(len(each), 'check')}: {', '.join(parts) or 'none asked'}{all_of_it}"


def _counted(severity: Severity, checks: Sequence[str]) -> str:
    if severity in ("ERROR", "WARNING"):
        return f"{counted(len(checks), _word(severity))} ({', '.join(checks)})"
    return f"{len(checks)} {_word(severity)}"


def _word(severity: Severity) -> str:
    return severity.lower().replace("_", " ")


def unsaid(gaps: Sequence[Gap], findings: Sequence[Finding]) -> list[Gap]:
    """The gaps to print: those whose reason no finding gives. What GPU or driver lack is left to the checks."""
    facts = {finding.fact for finding in findings}
    given = {gap.reason for gap in gaps if gap.fact in facts}
    return [gap for gap in gaps if gap.cause not in ("not_supported", "no_such_call") and gap.reason not in given]


def print_gaps(gaps: Sequence[Gap], stream: IO[str]) -> None:
    if not gaps:
        return
    table = table_of("not known", "why")
    for reason, facts in by_reason(gaps).items():
        add(table, "\n".join(facts), reason)
    console_of(stream).print(table)


def _machine(fingerprint: Fingerprint) -> str:
    lines = []
    if fingerprint.gpu:
        count = f"{fingerprint.gpu_count} x " if fingerprint.gpu_count > 1 else ""
        capability, driver = fingerprint.compute_capability or "unknown", fingerprint.driver or "unknown"
        lines.append(f"GPU    {count}{fingerprint.gpu}, compute capability {capability}, driver {driver}")
        if said := hardware_text(fingerprint.compute_capability, fingerprint.gpu):
            lines.append(f"       {said}")
    libraries = (("CUDA", fingerprint.cuda), ("cuBLAS", fingerprint.cublas), ("cuDNN", fingerprint.cudnn))
    versions = "".join(f", {name} {version}" for name, version in libraries if version)
    lines.append(f"torch  {fingerprint.torch}{versions}")
    lines.append(f"CPU    {fingerprint.cpu or 'unknown model'}, {fingerprint.cpu_budget} for this process")
    return "\n".join(lines)
