"""`gputune status`: what holds in a Python that is started here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def status(
    verify: Annotated[
        bool, typer.Option("--verify", help="Compute on the GPU whether the precision flags took effect.")
    ] = False,
    python: Annotated[
        str | None, typer.Option(help="Ask the torch of this interpreter.", show_default="gputune's own")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what gputune set here, what you kept, and who chose each value; in a job, of that job.

    A Python is started in this environment, imports torch, and is asked. Ranks of a job that print the same digest (after "applied
    here") started alike. Exit code 1 where a setting failed, or a flag that was verified did not take effect.
    """
    from gputune.cli.check import interpreter
    from gputune.host import Host
    from gputune.report import applied, json
    from gputune.report.progress import waiting
    from gputune.runtime.status import ask

    host = Host(python=interpreter(python))
    with waiting("importing torch in another process ..."):
        found = ask(host, verify)
    if as_json:
        print(json.status(found))
    else:
        applied.print_status(found, verify, sys.stdout)
    if any(one.status == "failed" for one in found.settings) or any(one.took_effect is False for one in found.verified):
        raise typer.Exit(1)
