"""`gputune check`: look at this machine without changing or loading anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gputune.facts import Facts

FAIL_ON = {"error": ("ERROR",), "warning": ("ERROR", "WARNING"), "never": ()}


def check(
    as_json: Annotated[bool, typer.Option("--json", help="Print facts and findings as JSON on stdout.")] = False,
    fail_on: Annotated[str, typer.Option(help="error, warning or never: what makes the exit code 1.")] = "error",
    only: Annotated[list[str] | None, typer.Option(help="Ask only these checks, separated by commas.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Leave these checks out, separated by commas.")] = None,
    python: Annotated[
        str | None, typer.Option(help="Look at the torch of this interpreter.", show_default="gputune's own")
    ] = None,
    require_gpu: Annotated[bool, typer.Option("--require-gpu", help="No GPU is an error.")] = False,
    nfd: Annotated[
        Path | None,
        typer.Option("--nfd", metavar="DIR", help="Write labels for node-feature-discovery into this folder too."),
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option("--prometheus", metavar="DIR", help="Write metrics for node_exporter into this folder too."),
    ] = None,
) -> None:
    """Look at this machine without changing anything: what is wrong, and what to type."""
    from gputune import checks
    from gputune.cli import _node_files
    from gputune.report import json, terminal

    _known(fail_on, "--fail-on", list(FAIL_ON), "level")
    wanted = _wanted(only, skip)
    files = _node_files.targets({"--nfd": nfd, "--prometheus": prometheus})
    found = _facts(python, require_gpu)
    findings = checks.run(found, only=wanted)
    fault = _node_files.write(files, found, findings)  # first: the reader of stdout may go away
    if as_json:
        print(json.check(found, findings))
    else:
        terminal.print_findings(findings, sys.stdout)
        terminal.print_gaps(terminal.unsaid(found.gaps, findings), sys.stdout)
        print(terminal.summary(findings))
    if fault:
        raise fault
    if any(finding.severity in FAIL_ON[fail_on] for finding in findings):
        raise typer.Exit(1)


def _wanted(only: list[str] | None, skip: list[str] | None) -> list[str]:
    from gputune import checks
    from gputune.errors import UsageError

    asked = _names(only, "--only") if only else checks.names()
    left_out = _names(skip or [], "--skip")
    wanted = [name for name in asked if name not in left_out]
    if not wanted:
        raise UsageError("--only and --skip leave no check to ask", "'gputune explain' lists them")
    return wanted


def _names(options: list[str], option: str) -> list[str]:
    from gputune import checks

    names = [name.strip() for text in options for name in text.split(",") if name.strip()]
    for name in names:
        _known(name, option, checks.names(), "check")
    return names


def _known(value: str, option: str, known: list[str], kind: str) -> None:
    from difflib import get_close_matches

    from gputune.errors import UsageError

    if value in known:
        return
    close = get_close_matches(value.lower(), known, n=1)
    choose = f"choose from {', '.join(known)}" if len(known) < 10 else "'gputune explain' lists them"
    raise UsageError(f"{option} {value}: there is no such {kind}", f"did you mean {close[0]}?" if close else choose)


AN_INTERPRETER = "name an interpreter, as in --python .venv/bin/python"


def interpreter(python: str | None) -> str | None:
    """The path of the program that --python names; None where it names none. Raises UsageError where it is not there."""
    from gputune.errors import UsageError
    from gputune.host import Host

    path = Host().which(python) if python else None
    if python and path is None:
        raise UsageError(f"--python {python}: there is no such program that may be run", AN_INTERPRETER)
    return path


def _facts(python: str | None, gpu_required: bool) -> Facts:
    """This machine's facts, with the torch of the interpreter that `--python` names."""
    from gputune import checks, facts
    from gputune.errors import UsageError
    from gputune.host import Host
    from gputune.report.progress import waiting

    path = interpreter(python)
    with waiting("reading this machine, and importing torch in another process ..."):
        found = facts.read(Host(python=path), gpu_required=gpu_required, variables=checks.variables())
    failure = next((gap for gap in found.gaps if gap.fact == "libraries.torch"), None)
    if path and failure and failure.cause == "exited":
        raise UsageError(f"--python {python}: {failure.reason}", AN_INTERPRETER)
    return found
