"""`gputune status`: the settings of a Python started in this environment."""

import sys
from typing import Annotated

import typer

from gputune.cli import _choices

EPILOG = _choices.epilog("""
  # The settings of a Python that is started here
  gputune status
  # With a profile applied
  gputune apply auto -- gputune status
  # Also compute on the GPU to see whether they took effect
  gputune status --verify
""", success="0 success; 1 a setting failed or had no effect, or a program was tuned elsewhere")  # fmt: skip


def status(
    verify: Annotated[
        bool, typer.Option("--verify", help="Test by computing on the GPU whether the precision flags took effect.")
    ] = False,
    python: Annotated[str | None, _choices.PYTHON] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what is in force here and who chose it.

    It may be gputune, you, or torch.

    Starts a Python in this environment, imports torch in it and reads the settings back. Ranks of a job that print the
    same digest ("applied here") started with equal settings. Exits with 1 if a setting failed or did not take effect,
    if a program of the profile was tuned on another machine, or if gputune apply does not reach this Python. Whether a
    tuned program is recognised by its models shows only when it runs: GPUTUNE_REPORT=1.
    """
    from gputune.host import Host
    from gputune.host.stderr import say, show
    from gputune.report import applied, json
    from gputune.report.progress import waiting
    from gputune.runtime.reach import is_cut_off
    from gputune.runtime.status import ask

    host = Host(python=_choices.interpreter(python))
    with waiting("importing torch in another process ..."):
        found = ask(host, verify)
    if as_json:
        show(json.status(found))
    else:
        applied.print_status(found, verify, sys.stdout)
    if is_cut_off(host.environ) and not any(row.source == "profile" for row in found.settings):
        say("PYTHONPATH was replaced behind gputune apply, which does not reach this Python; extend it instead")
        raise typer.Exit(1)
    failed = any(row.status == "failed" for row in found.settings)
    without_effect = any(row.took_effect is False for row in found.verified)
    if failed or without_effect or any(one.differences for one in found.programs):
        raise typer.Exit(1)
