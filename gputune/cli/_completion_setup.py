"""`--install-completion` and `--show-completion`: typer's script for the shell that gputune is started from."""

import importlib
import os
from pathlib import Path
from typing import Any

import typer

from gputune.errors import MeasureError, UsageError
from gputune_start import COMPLETE

SHELLS = ("bash", "zsh", "fish")


def show(ctx: typer.Context, wanted: bool) -> None:
    """Print the script, and end."""
    if not wanted or ctx.resilient_parsing:
        return
    from gputune.host.stderr import show

    script = _typer("get_completion_script", shell=_shell("--show-completion"))
    show(script)
    raise typer.Exit


def install(ctx: typer.Context, wanted: bool) -> None:
    """Write it where that shell looks, as typer does, and end."""
    if not wanted or ctx.resilient_parsing:
        return
    from gputune.host.stderr import show

    option = "--install-completion"
    try:
        shell, path = _typer("install", shell=_shell(option))
    except (OSError, ValueError, RuntimeError) as error:  # a file or folder, its text, or that there is no HOME
        fault = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise MeasureError(f"{option}: {fault}", "print it instead: gputune --show-completion") from None
    show(f"Written to {path}. It takes effect in the next {shell} that starts.")
    raise typer.Exit


def _typer(function: str, **more: Any) -> Any:
    from typer import completion

    return getattr(completion, function)(prog_name="gputune", complete_var=COMPLETE, **more)


def _shell(option: str) -> str:
    """The shell that started this process, or the user's. Raises UsageError where typer has no script for it."""
    shellingham: Any = importlib.import_module("shellingham")  # has no types

    try:
        name = str(shellingham.detect_shell()[0])
    except (shellingham.ShellDetectionFailure, OSError):
        name = Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        fault = f"{name[:40]} is not supported" if name else "no shell started this"
        raise UsageError(f"{option}: {fault}", f"start it from {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    return name
