"""`gputune apply`: run a command with a profile's settings, or print them for a shell."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gputune.errors import GputuneError, UsageError
from gputune.settings import LEVELS

if TYPE_CHECKING:
    from gputune.host import Host
    from gputune.profile import Fingerprint, Profile
    from gputune.runtime.environment import Plan

CONTEXT = {"allow_interspersed_args": False}
"""What follows the profile is the command's, options too."""


TASK_PROLOG = "slurm-taskprolog"
FORMS = ("shell", TASK_PROLOG)
"""In what form the variables are printed."""


class Refused(GputuneError):
    """What `--strict` does not let pass; the code is that of EX_CONFIG in sysexits.h."""

    exit_code = 78


def apply(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="The profile that gputune probe wrote; auto: GPUTUNE_PROFILE, else the one of this machine.",
        ),
    ],
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
    numerics: Annotated[
        str | None,
        typer.Option(
            "--numerics",
            metavar="LEVEL",
            help="How far results may change: exact, rounding, tf32 or mixed. Without it TF32 is the most that follows by itself.",
        ),
    ] = None,
    emit: Annotated[
        str, typer.Option("--emit", metavar="FORM", help="Without CMD, print for a shell, or for a slurm-taskprolog.")
    ] = "shell",
) -> None:
    """Run CMD with a profile's settings, or without CMD print them for a shell.

    CMD takes gputune's place: its exit code and signals are its own. A profile that cannot be read is said in one
    line, and CMD runs without it. What you exported or set yourself stays as it is.
    """
    words = _command(command or [])
    _check(numerics, "--numerics", LEVELS)
    _check(emit, "--emit", FORMS)
    if words and emit != "shell":
        raise UsageError(f"--emit {emit}: prints, and runs no command", "leave out the command or --emit")
    asked = _Asked(ignore_fingerprint, strict, numerics, words or [])
    if words is None:
        _export(profile, asked, emit)
    else:
        _run(profile, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options, and the command."""

    ignore_fingerprint: bool
    strict: bool
    numerics: str | None
    words: list[str]


def _check(value: str | None, option: str, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise UsageError(f"{option} {value}: there is no such thing", f"choose from {', '.join(known)}")


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


def _export(path: str, asked: _Asked, emit: str) -> None:
    from gputune.runtime.launch import disabled, say

    if disabled(os.environ):
        say("GPUTUNE_DISABLE=1: nothing is set")
    else:
        _print(_plan(path, asked), path, emit)


def _run(path: str, asked: _Asked) -> NoReturn:
    from gputune.runtime.launch import disabled, inherited, launch, say
    from gputune.runtime.reach import beyond_reach

    words, environ = asked.words, inherited()
    if disabled(environ):
        launch(words, environ)
    try:
        planned = _plan(path, asked)
        environ = _child(planned, environ)
        if environ.get("GPUTUNE_PROBE") == "always":
            environ["GPUTUNE_PROBE"] = "missing"  # for an apply further in, which is no other start
        if line := "; ".join(filter(None, [summary(planned), planned.payload and beyond_reach(words)])):
            say(line)
    except Refused:
        raise
    except Exception as error:  # whatever it is: the command does not depend on gputune
        fault = str(error) if isinstance(error, GputuneError) else f"{path}: {type(error).__name__}: {error}"
        if asked.strict:
            raise Refused(fault, "without --strict the command runs all the same, unchanged") from None
        say(f"{fault}; running {words[0]} unchanged")
    launch(words, environ)


def _plan(path: str, asked: _Asked) -> Plan:
    from gputune.host import Host
    from gputune.inject.decision import Terms
    from gputune.runtime.environment import plan
    from gputune.runtime.launch import one_line
    from gputune.runtime.local_fingerprint import local_fingerprint
    from gputune.runtime.numerics import limit
    from gputune.runtime.ranks import starts_ranks

    host = Host()
    known = _known(path)
    here = local_fingerprint(host)
    terms = Terms(
        ignore_fingerprint=asked.ignore_fingerprint,
        numerics=limit(asked.numerics, host.environ),
        ranks=starts_ranks(asked.words),
    )
    planned = plan(known or _of_this_machine(host, here), here, host.environ, terms)
    if asked.strict and planned.elsewhere:
        raise Refused(
            one_line(
                f"{path}: {', '.join(planned.elsewhere)} measured on another machine ({', '.join(planned.differences)})"
            ),
            "measure this one with: gputune probe -o profile.yaml; or apply it anyway with --ignore-fingerprint",
        )
    return planned


def _known(path: str) -> Profile | None:
    """The profile of a path; None for `auto`."""
    from gputune import profile
    from gputune.runtime.locate import AUTO

    return None if path == AUTO else profile.load(path)


def _of_this_machine(host: Host, here: Fingerprint) -> Profile:
    from gputune import profile
    from gputune.cli._probing_first import probe_first
    from gputune.runtime.locate import chosen

    probe_first(host, here)
    return profile.load(chosen(here, host.environ))


def _child(planned: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    from gputune.runtime.environment import child

    return child(planned, environ)


def summary(planned: Plan) -> str:
    """One line about what the user may not expect: what is skipped, left out or defeated, and TF32 that nobody asked for."""
    said = []
    if planned.elsewhere:
        count = sum(row.status == "applied" for row in planned.applied)
        said.append(
            f"applied {count} settings, skipped {len(planned.elsewhere)} measured on another machine "
            f"({', '.join(planned.differences)}); --ignore-fingerprint applies them"
        )
    if planned.left_out:
        said.append(f"left out by numerics: {', '.join(planned.left_out)}")
    if planned.defeated:
        said.append(f"NVIDIA_TF32_OVERRIDE defeats {', '.join(planned.defeated)}")
    elif planned.tf32_line:
        said.append(planned.tf32_line)
    return "; ".join(said)


def _print(planned: Plan, path: str, emit: str) -> None:
    """The exports on stdout, for `eval` or for Slurm; for the reader of the first, on stderr, the table and how to use either."""
    from gputune.report.applied import print_applied
    from gputune.runtime.environment import exports, task_prolog
    from gputune.runtime.launch import inherited, say

    if emit == TASK_PROLOG:
        typer.echo(task_prolog(planned, inherited()), nl=False)
        if line := summary(planned):
            say(line)
        return
    name = shlex.quote(path)
    typer.echo(exports(planned), nl=False)
    print_applied(planned.applied, sys.stderr)
    typer.echo(
        f'Use it for a shell script:  eval "$(gputune apply {name})"\n'
        f"or for one command:         gputune apply {name} -- python train.py",
        err=True,
    )
