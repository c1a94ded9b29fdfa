"""`gputune status`: the settings of a Python started in this environment."""

import sys
from typing import Annotated

import typer

from gputune.cli import _paths


def status(
    verify: Annotated[
        bool, typer.Option("--verify", help="Test by computing on the GPU whether the precision flags took effect.")
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(
            parser=_paths.name, metavar="PATH", help="The interpreter to start.", show_default="gputune's own"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show which settings are in force in this environment, and who chose each value: gputune, you, or torch.

    Starts a Python in this environment, imports torch in it and reads the settings back. Ranks of a job that print the
    same digest ("applied here") started with equal settings. Exits with 1 if a setting failed or did not take effect.
    """
    from gputune.cli.check import interpreter
    from gputune.host import Host
    from gputune.host.stderr import show
    from gputune.report import applied, json
    from gputune.report.progress import waiting
    from gputune.runtime.status import ask

    host = Host(python=interpreter(python))
    with waiting("importing torch in another process ..."):
        found = ask(host, verify)
    if as_json:
        show(json.status(found))
    else:
        applied.print_status(found, verify, sys.stdout)
    if any(row.status == "failed" for row in found.settings) or any(row.took_effect is False for row in found.verified):
        raise typer.Exit(1)
