"""`gputune show`: a profile, for reading."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gputune.cli import _choices, _output

EPILOG = _choices.epilog("""
  # What was found, and why
  gputune show profile.yaml
  # As lines of Python for your script
  gputune show profile.yaml --as-code
  # Also every setting with its reason
  gputune show profile.yaml --all
  # As a page for a browser
  gputune show profile.yaml --html profile.html
""")


def show(
    profile: Annotated[Path, typer.Argument(parser=_choices.path, metavar="PROFILE", help="The profile to show.")],
    every: Annotated[
        bool, typer.Option("--all", help="Also print every setting with its reason, findings and gaps.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    in_code: Annotated[
        bool, typer.Option("--as-code", help="Print what gputune apply puts into scripts, as lines of Python.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--html", parser=_choices.path, metavar="FILE", help="Write it as one page for a browser."),
    ] = None,
) -> None:
    """Read a profile: gains, charts and reasons.

    The last screen says what is gained and what to type next.
    """
    from gputune.cli._programs import instead
    from gputune.errors import UsageError
    from gputune.host import Host
    from gputune.host.stderr import show as put
    from gputune.profile import dump_json, load
    from gputune.report import as_code, terminal
    from gputune.report.answer import answer_of
    from gputune.runtime.local_fingerprint import lacks_device

    if to_run := instead([str(profile)]):
        raise UsageError(f"{profile} is a program and no profile", to_run)
    if as_json and in_code:
        raise UsageError("--json and --as-code: both print to stdout", "choose one of them")
    if page and (as_json or in_code):
        raise UsageError("--html, --json and --as-code: each is another way to show it", "choose one of them")
    if page:
        _output.write_page(profile, page)
        return
    found = load(profile)
    if as_json:
        put(dump_json(found), end="")
    elif in_code:
        put(as_code.text(found), end="")
    else:
        answer = answer_of(found, str(profile), is_elsewhere=lacks_device(Host(), found.fingerprint))
        terminal.print_profile(found, sys.stdout, answer, every=every)
