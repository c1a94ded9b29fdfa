"""`gputune check`: look at this machine without changing or loading anything."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

FAIL_ON = {"error": ("ERROR",), "warning": ("ERROR", "WARNING"), "never": ()}


def check(
    as_json: Annotated[bool, typer.Option("--json", help="Print facts and findings as JSON on stdout.")] = False,
    fail_on: Annotated[str, typer.Option(help="error, warning or never: what makes the exit code 1.")] = "error",
) -> None:
    """Look at this machine without changing anything: what is wrong, and what to type."""
    from gputune import checks, facts
    from gputune.errors import UsageError
    from gputune.host import Host
    from gputune.report import json, terminal

    if fail_on not in FAIL_ON:
        raise UsageError(f"--fail-on {fail_on}: there is no such level", f"choose from {', '.join(FAIL_ON)}")
    found = facts.read(Host())
    findings = checks.run(found)
    if as_json:
        print(json.check(found, findings))
    else:
        terminal.print_findings(findings, sys.stdout)
        terminal.print_gaps(found.gaps, sys.stdout)
    if any(finding.severity in FAIL_ON[fail_on] for finding in findings):
        raise typer.Exit(1)
