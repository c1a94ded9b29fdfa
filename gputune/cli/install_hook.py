"""`gputune install-hook`: make `gputune apply` reach an interpreter that ignores PYTHONPATH."""

from typing import Annotated

import typer

from gputune.cli import _paths


def install_hook(
    python: Annotated[
        str | None,
        typer.Option(
            parser=_paths.name,
            metavar="PATH",
            help="The interpreter, such as a virtual environment's.",
            show_default="gputune's own",
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the file again.")] = False,
) -> None:
    """Write a file into one interpreter's site-packages, so that gputune apply also reaches python -I and -E.

    The file has no effect outside gputune apply.
    """
    from gputune.cli.check import interpreter
    from gputune.host import Host
    from gputune.host.stderr import show
    from gputune.resources.printable import quoted
    from gputune.runtime import hook_file

    path = hook_file.place(Host(python=interpreter(python)))
    if remove:
        show(f"Removed {path}" if hook_file.remove(path) else f"Nothing to remove: there is no {path}")
        return
    hook_file.write(path)
    option = f" --python {quoted(python)}" if python else ""
    show(f"Written to {path}. To remove it: gputune install-hook{option} --remove")
