"""`gputune install-hook`: make `gputune apply` reach an interpreter that ignores PYTHONPATH."""

import shlex
from typing import Annotated

import typer


def install_hook(
    python: Annotated[
        str | None, typer.Option(help="The interpreter, such as a virtual environment's.", show_default="gputune's own")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the file again.")] = False,
) -> None:
    """Write a file into one interpreter's site-packages, so that gputune apply also reaches python -I and -E.

    The file has no effect outside gputune apply.
    """
    from gputune.cli.check import interpreter
    from gputune.host import Host
    from gputune.runtime import hook_file

    path = hook_file.place(Host(python=interpreter(python)))
    if remove:
        print(f"Removed {path}" if hook_file.remove(path) else f"Nothing to remove: there is no {path}")
        return
    hook_file.write(path)
    option = f" --python {shlex.quote(python)}" if python else ""
    print(f"Written to {path}. To remove it: gputune install-hook{option} --remove")
