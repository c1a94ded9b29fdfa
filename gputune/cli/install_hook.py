"""`gputune install-hook`: make `gputune apply` reach an interpreter that ignores PYTHONPATH."""

from typing import Annotated

import typer

from gputune.cli import _choices

EPILOG = _choices.epilog("""
  # Also reach python -I and -E of this one
  gputune install-hook --python .venv/bin/python
  # Undo that
  gputune install-hook --python .venv/bin/python --remove
""", faults=_choices.UNWRITTEN)  # fmt: skip


def install_hook(
    python: Annotated[str | None, _choices.PYTHON] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the file again.")] = False,
) -> None:
    """Reach a Python that ignores PYTHONPATH.

    A file in its site-packages lets gputune apply also reach python -I and -E, and programs whose PYTHONPATH was
    replaced. It has no effect otherwise. Remove it before gputune is uninstalled.
    """
    from gputune.host import Host
    from gputune.host.stderr import show
    from gputune.resources.printable import quoted
    from gputune.runtime import hook_file

    path = hook_file.place(Host(python=_choices.interpreter(python)))
    if remove:
        show(f"Removed {path}" if hook_file.remove(path) else f"Nothing to remove: there is no {path}")
        return
    hook_file.write(path)
    option = f" --python {quoted(python)}" if python else ""
    show(f"Written to {path}. To remove it: gputune install-hook{option} --remove")
