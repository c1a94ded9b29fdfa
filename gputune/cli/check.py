"""`gputune check`: look at this machine without changing it or putting it under load."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gputune.cli import _choices
from gputune.errors import MeasureError, UsageError, require

if TYPE_CHECKING:
    from gputune.checks import Finding, Severity
    from gputune.facts import Facts
    from gputune.report.severities import FailOn

EPILOG = """\b
Examples:
  # What is wrong here
  gputune check
  # With the torch of another interpreter
  gputune check --python .venv/bin/python
  # In a job: exit with 1 unless all is well
  gputune check --expect-gpus 8 --fail-on warning
  # Some checks, for another program
  gputune check --json --only shm_size,cpu_quota

Exit codes: 0 no finding at or above --fail-on; 1 such a finding; 2 wrong usage, or a file that
cannot be read; others: gputune --help.
"""


def check(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts, findings and a summary as JSON on stdout.")
    ] = False,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="Exit with 1 from this level up: error, warning, unknown, or never.",
            autocompletion=_choices.fail_on,
        ),
    ] = "error",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Run only these checks.", autocompletion=_choices.some_checks),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Skip these checks.", autocompletion=_choices.some_checks),
    ] = None,
    python: Annotated[str | None, _choices.PYTHON] = None,
    require_gpu: Annotated[
        bool, typer.Option("--require-gpu", help="Report a machine without a GPU as an error.")
    ] = False,
    expect_gpus: Annotated[
        int | None, typer.Option(metavar="N", help="Report any other number of GPUs.", min=0, max=256)
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long NVML may take for all its answers.", min=0.1, max=600)
    ] = 5.0,
    nfd: Annotated[
        Path | None,
        typer.Option(
            parser=_choices.path, metavar="DIR", help="Also write labels for node-feature-discovery into this folder."
        ),
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            parser=_choices.path, metavar="DIR", help="Also write metrics for node_exporter into this folder."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also print what is in order or not applicable.")] = False,
) -> None:
    """Find what is wrong here, and how to fix it.

    Nothing is changed, and the machine is not put under load.
    """
    from gputune import checks
    from gputune.host.stderr import show
    from gputune.report import json, severities, terminal

    require(fail_on, severities.FAIL_ON, "level", "--fail-on")
    selected = _selected(only, skip)
    files = _targets({"--nfd": nfd, "--prometheus": prometheus})
    found = _facts(python, require_gpu, expect_gpus, timeout)
    findings = checks.run(found, only=selected)
    summary = severities.summary(findings, cast("FailOn", fail_on))
    fault = _write(files, found, findings)  # first: the reader of stdout may go away
    if as_json:
        show(json.check(found, findings, summary))
    else:
        least: Severity = "NOT_APPLICABLE" if every else "UNKNOWN"
        terminal.print_findings(findings, sys.stdout, least)
        terminal.print_gaps(terminal.unsaid(found.gaps, findings), sys.stdout)
        show(terminal.summary(findings, least))
    if fault:
        raise fault
    if summary.exit_code:
        raise typer.Exit(summary.exit_code)


def _selected(only: list[str] | None, skip: list[str] | None) -> list[str]:
    """The names of the checks to run. Raises UsageError for an unknown name, and where none is left."""
    from gputune import checks

    skipped = _split(skip or [], "--skip")
    selected = [name for name in (_split(only, "--only") if only else checks.names()) if name not in skipped]
    if not selected:
        raise UsageError("--only and --skip leave no check to run", "'gputune explain' lists them")
    return selected


def _split(values: list[str], option: str) -> list[str]:
    from gputune import checks

    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    for name in names:
        require(name, checks.names(), "check", option)
    return names


def _facts(python: str | None, gpu_required: bool, gpus_expected: int | None, timeout: float) -> Facts:
    from gputune import checks, facts
    from gputune.host import Host
    from gputune.report.progress import waiting

    path = _choices.interpreter(python)
    with waiting("reading this machine, and importing torch in another process ..."):
        host = Host(python=path, nvml_deadline_seconds=timeout)
        found = facts.read(host, gpu_required=gpu_required, gpus_expected=gpus_expected, variables=checks.variables())
    failure = next((gap for gap in found.gaps if gap.fact == "libraries.torch"), None)
    if path and failure and failure.cause == "exited":
        raise UsageError(f"--python {python}: {failure.reason}", _choices.AN_INTERPRETER)
    return found


FILES = {"--nfd": "gputune.features", "--prometheus": "gputune.prom"}
"""The file that each option writes into its folder."""


def _targets(folders: Mapping[str, Path | None]) -> dict[str, Path]:
    """The file to write for each option that was given. Raises UsageError where a folder cannot be written to."""
    from gputune.cli._output import check_folder

    given = {option: folder for option, folder in folders.items() if folder is not None}
    for option, folder in given.items():
        check_folder(option, folder)
    return {option: folder / FILES[option] for option, folder in given.items()}


def _write(files: Mapping[str, Path], facts: Facts, findings: Sequence[Finding]) -> MeasureError | None:
    """Write every file and return the first fault, which must cost neither the other file nor the answer on stdout."""
    from gputune.host import atomic
    from gputune.report import nfd, prometheus

    faults = []
    for option, path in files.items():
        report = {"--nfd": nfd, "--prometheus": prometheus}[option]
        try:
            atomic.write(path, report.text(facts, findings))
        except OSError as error:
            message = f"{option}: {path}: not written: {error.strerror}"
            faults.append(MeasureError(message, "free some space there, or name another folder"))
    return faults[0] if faults else None
