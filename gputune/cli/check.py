"""`gputune check`: look at this machine without changing or loading anything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gputune.host import Host

FAIL_ON = {"error": ("ERROR",), "warning": ("ERROR", "WARNING"), "never": ()}


def check(
    as_json: Annotated[bool, typer.Option("--json", help="Print facts and findings as JSON on stdout.")] = False,
    fail_on: Annotated[str, typer.Option(help="error, warning or never: what makes the exit code 1.")] = "error",
    only: Annotated[str, typer.Option(help="Ask only these checks, separated by commas.")] = "",
    skip: Annotated[str, typer.Option(help="Leave these checks out, separated by commas.")] = "",
    python: Annotated[
        str | None, typer.Option(help="Look at the torch of this interpreter.", show_default="gputune's own")
    ] = None,
    require_gpu: Annotated[bool, typer.Option("--require-gpu", help="No GPU is an error.")] = False,
) -> None:
    """Look at this machine without changing anything: what is wrong, and what to type."""
    from gputune import checks, facts
    from gputune.report import json, terminal

    _known(fail_on, "--fail-on", list(FAIL_ON), "level")
    wanted = _names(only, "--only") or checks.names()
    left_out = _names(skip, "--skip")
    host = _host(python)
    found = facts.read(host, gpu_required=require_gpu)
    findings = checks.run(found, only=[name for name in wanted if name not in left_out])
    if as_json:
        print(json.check(found, findings))
    else:
        terminal.print_findings(findings, sys.stdout)
        terminal.print_gaps(terminal.unsaid(found.gaps, findings), sys.stdout)
        print(terminal.summary(findings))
    if any(finding.severity in FAIL_ON[fail_on] for finding in findings):
        raise typer.Exit(1)


def _names(text: str, option: str) -> list[str]:
    from gputune import checks

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        _known(name, option, checks.names(), "check")
    return names


def _known(value: str, option: str, known: list[str], kind: str) -> None:
    from difflib import get_close_matches

    from gputune.errors import UsageError

    if value in known:
        return
    close = get_close_matches(value, known, n=1)
    choose = f"choose from {', '.join(known)}" if len(known) < 10 else "'gputune explain' lists them"
    raise UsageError(f"{option} {value}: there is no such {kind}", f"did you mean {close[0]}?" if close else choose)


def _host(python: str | None) -> Host:
    """This machine, seen by that interpreter."""
    from gputune.errors import UsageError
    from gputune.host import Host

    here = Host()
    if python is None:
        return here
    path = here.which(python)
    if path is None:
        raise UsageError(
            f"--python {python}: there is no such program", "name an interpreter, as in --python .venv/bin/python"
        )
    return Host(python=path)
