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

EPILOG = _choices.epilog("""
  # What is wrong here
  gputune check
  # With the torch of another interpreter
  gputune check --python .venv/bin/python
  # In a job: exit with 1 unless all is well
  gputune check --expect-gpus 8 --fail-on warning
  # Some checks, for another program
  gputune check --json --only shm_size,cpu_quota
""", success="0 no finding at or above --fail-on; 1 such a finding")  # fmt: skip


def check(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts, findings and a summary as JSON on stdout.")
    ] = False,
    fail_on: Annotated[
        str,
        _choices.word("LEVEL", "Exit with 1 from this level up: error, warning, unknown, or never.", _choices.fail_on),
    ] = "error",
    only: Annotated[list[str] | None, _choices.some_checks("Run only these checks.")] = None,
    skip: Annotated[list[str] | None, _choices.some_checks("Skip these checks.")] = None,
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
        Path | None, _choices.place("DIR", "Also write labels for node-feature-discovery into this folder.")
    ] = None,
    prometheus: Annotated[
        Path | None, _choices.place("DIR", "Also write metrics for node_exporter into this folder.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also print what is in order or not applicable.")] = False,
) -> None:
    """Find what is wrong here, and how to fix it.

    Nothing is changed, and the machine is not put under load.
    """
    from gputune import checks
    from gputune.cli._output import check_folder
    from gputune.host.stderr import show
    from gputune.report import json, severities, terminal

    require(fail_on, severities.FAIL_ON, "level", "--fail-on")
    known = checks.names()
    skipped = _choices.listed(skip or [], "--skip", "check", known)
    asked = _choices.listed(only, "--only", "check", known) if only else known
    selected = [name for name in asked if name not in skipped]
    if not selected:
        raise UsageError("--only and --skip leave no check to run", "'gputune explain' lists them")
    folders = {option: one for option, one in (("--nfd", nfd), ("--prometheus", prometheus)) if one}
    for option, folder in folders.items():
        check_folder(option, folder)
    found = _facts(python, require_gpu, expect_gpus, timeout)
    findings = checks.run(found, only=selected)
    summary = severities.summary(findings, cast("FailOn", fail_on))
    fault = _write(folders, found, findings)  # first: the reader of stdout may go away
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


def _write(folders: Mapping[str, Path], facts: Facts, findings: Sequence[Finding]) -> MeasureError | None:
    """Write every file and return the first fault, which must cost neither the other file nor the answer on stdout."""
    from gputune.host import atomic
    from gputune.report import nfd, prometheus

    reports = {"--nfd": ("gputune.features", nfd.text), "--prometheus": ("gputune.prom", prometheus.text)}
    fault = None
    for option, folder in folders.items():
        name, text = reports[option]
        path = folder / name
        try:
            atomic.write(path, text(facts, findings))
        except OSError as error:
            message = f"{option}: {path}: not written: {error.strerror}"
            fault = fault or MeasureError(message, "free some space there, or name another folder")
    return fault
