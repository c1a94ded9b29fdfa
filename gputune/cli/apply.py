"""`gputune apply`: run a command with a profile's settings, or print them for a shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gputune.errors import GputuneError, UsageError

if TYPE_CHECKING:
    from gputune.runtime.environment import Plan

CONTEXT = {"allow_interspersed_args": False}
"""What follows the profile is the command's, options too."""


class Refused(GputuneError):
    """What `--strict` does not let pass; the code is that of EX_CONFIG in sysexits.h."""

    exit_code = 78


def apply(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="The profile that gputune probe wrote.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="The command to run, and its arguments.")
    ] = None,
    ignore_fingerprint: Annotated[
        bool, typer.Option("--ignore-fingerprint", help="Also apply what was measured on another machine.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Do not run CMD, but exit 78, where the profile cannot be read or was measured elsewhere."
        ),
    ] = False,
) -> None:
    """Run CMD with a profile's settings, or without CMD print them for a shell.

    CMD takes gputune's place: its exit code and signals are its own. A profile that cannot be read is said in one
    line, and CMD runs without it. What you exported or set yourself stays as it is.
    """
    words = _command(command or [])
    if words is None:
        _print(_plan(profile, ignore_fingerprint, strict), profile)
    else:
        _run(words, profile, ignore_fingerprint, strict)


def _command(words: list[str]) -> list[str] | None:
    """The command without the `--` before it; None where none was given."""
    if not words:
        return None
    if words[0] == "--":
        words = words[1:]
    elif words[0].startswith("-"):
        raise UsageError(
            f"{words[0]} stands after the profile", "options come before it: gputune apply [OPTIONS] PROFILE -- CMD"
        )
    if not words:
        raise UsageError("no command follows --", "name one: gputune apply PROFILE -- python train.py")
    return words


def _run(words: list[str], path: Path, ignore_fingerprint: bool, strict: bool) -> NoReturn:
    from gputune.runtime.launch import disabled, inherited, launch, say
    from gputune.runtime.ranks import starts_ranks

    environ: Mapping[str, str] = inherited()
    if disabled(environ):
        launch(words, environ)
    try:
        planned = _plan(path, ignore_fingerprint, strict, ranks=starts_ranks(words))
        environ = _child(planned, environ)
        if line := summary(planned):
            say(line)
    except Refused:
        raise
    except Exception as error:  # whatever it is: the command does not depend on gputune
        fault = str(error) if isinstance(error, GputuneError) else f"{path}: {type(error).__name__}: {error}"
        if strict:
            raise Refused(fault, "without --strict the command runs all the same, unchanged") from None
        say(f"{fault}; running {words[0]} unchanged")
    launch(words, environ)


def _plan(path: Path, ignore_fingerprint: bool, strict: bool, ranks: bool = False) -> Plan:
    from gputune import profile
    from gputune.host import Host
    from gputune.runtime.environment import plan
    from gputune.runtime.here import fingerprint_here
    from gputune.runtime.launch import one_line

    host = Host()
    planned = plan(profile.load(path), fingerprint_here(host), host.environ, ignore_fingerprint, ranks)
    if strict and planned.elsewhere:
        raise Refused(
            one_line(
                f"{path}: {', '.join(planned.elsewhere)} measured on another machine ({', '.join(planned.differences)})"
            ),
            "measure this one with: gputune probe -o profile.yaml; or apply it anyway with --ignore-fingerprint",
        )
    return planned


def _child(planned: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    from gputune.runtime.environment import child

    return child(planned, environ)


def summary(planned: Plan) -> str:
    """One line about what was skipped because the machine differs and what is defeated; empty where nothing was."""
    said = []
    if planned.elsewhere:
        count = sum(row.status == "applied" for row in planned.applied)
        said.append(
            f"applied {count} settings, skipped {len(planned.elsewhere)} measured on another machine "
            f"({', '.join(planned.differences)}); --ignore-fingerprint applies them"
        )
    if planned.defeated:
        said.append(f"NVIDIA_TF32_OVERRIDE defeats {', '.join(planned.defeated)}")
    return "; ".join(said)


def _print(planned: Plan, path: Path) -> None:
    """The exports on stdout, for `eval`; for the reader, on stderr, the table and how to use either."""
    from gputune.report.terminal import print_applied
    from gputune.runtime.environment import exports

    name = shlex.quote(str(path))
    typer.echo(exports(planned), nl=False)
    print_applied(planned.applied, sys.stderr)
    typer.echo(
        f'Use it for a shell script:  eval "$(gputune apply {name})"\n'
        f"or for one command:         gputune apply {name} -- python train.py",
        err=True,
    )
