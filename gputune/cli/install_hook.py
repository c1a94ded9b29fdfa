"""`gputune install-hook`: reach an interpreter that ignores PYTHONPATH."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer


def install_hook(
    python: Annotated[
        str | None,
        typer.Option(help="The interpreter to reach, as of a virtual environment.", show_default="gputune's own"),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the file away again.")] = False,
) -> None:
    """Write a file into one interpreter's packages, so that gputune apply also reaches python -I and -E.

    Only there, only when you ask, and it does nothing but below gputune apply.
    """
    from gputune.cli.check import interpreter
    from gputune.host import Host
    from gputune.runtime import hook_file

    path = hook_file.place(Host(python=interpreter(python)))
    if remove:
        print(f"{'Removed' if hook_file.remove(path) else 'There was no'} {path}")
        return
    hook_file.write(path)
    print(
        f"Written to {path}. Take it away with: gputune install-hook{f' --python {shlex.quote(python)}' if python else ''} --remove"
    )
