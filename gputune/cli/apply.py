"""`gputune apply`: run a command with a profile's settings, or print them for a shell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from gputune.cli import _choices
from gputune.errors import GputuneError, UsageError, require
from gputune.knobs import LEVELS, Numerics, names
from gputune.runtime.deciding import Terms

if TYPE_CHECKING:
    from gputune.runtime.environment import Plan

CONTEXT = {"allow_interspersed_args": False}
"""Words after the profile, options too, belong to the command."""
TASK_PROLOG = "slurm-taskprolog"
FORMS = ("shell", TASK_PROLOG)


class Refused(GputuneError):
    """`--strict` refused to go on; the exit code is EX_CONFIG of sysexits.h."""

    exit_code = 78


EPILOG = _choices.epilog(
    """
  # With what was measured on this machine
  gputune apply auto -- python train.py
  # Also mixed precision, in an unchanged script
  gputune apply --numerics mixed auto -- python train.py
  # See what would be done
  gputune apply --dry-run auto -- python train.py
  # Set the variables in this shell
  eval "$(gputune apply profile.yaml)"
""",
    success="CMD's own or, without CMD, 0",
    faults="78 refused by --strict; 126, 127 CMD cannot be run, or is not found",
)


def apply(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="The profile that gputune probe or tune wrote; auto: GPUTUNE_PROFILE, else the one of this machine.",
            autocompletion=_choices.auto,
        ),
    ],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="CMD", help="After --: the command to run, and its arguments.")
    ] = None,
    ignore_fingerprint: Annotated[
        bool, typer.Option("--ignore-fingerprint", help="Also apply settings that were measured on another machine.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Do not run CMD, but exit 78, where the profile cannot be read or was measured elsewhere."
        ),
    ] = False,
    numerics: Annotated[str | None, _choices.LEVEL] = None,
    inject: Annotated[
        bool,
        typer.Option(
            "--inject",
            help="Also put in what takes lines of a script, within the level of --numerics; 'mixed' implies it.",
        ),
    ] = False,
    inject_dataloader: Annotated[
        bool, typer.Option("--inject-dataloader", help="Also give workers to DataLoaders that were given none.")
    ] = False,
    only: Annotated[str, _choices.some_settings("Apply these settings alone.")] = "",
    skip: Annotated[str, _choices.some_settings("Apply all settings but these.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and do not run CMD.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but faults.")] = False,
    emit: Annotated[
        str, _choices.word("FORM", "Without CMD, the form to print: shell or slurm-taskprolog.", lambda: FORMS)
    ] = "shell",
) -> None:
    """Run a program with a profile applied.

    Without CMD, the settings are printed for a shell.

    CMD replaces gputune: its exit code and signals are its own. If the profile cannot be read, one line says so and CMD
    runs without it. Whatever you exported or set yourself stays as it is.
    """
    from gputune.cli._programs import require_a_profile, require_no_script

    require_a_profile(profile, command or [])
    words = _command(command or [])
    if words:
        require_no_script(words, "apply")
    if numerics is not None:
        require(numerics, LEVELS, "level", "--numerics")
    require(emit, FORMS, "form", "--emit")
    if words and emit != "shell":
        raise UsageError(f"--emit {emit}: prints, and does not run a command", "leave out the command or --emit")
    terms = Terms(
        ignore_fingerprint=ignore_fingerprint, numerics=cast(Numerics | None, numerics), quiet=quiet,
        inject=inject, inject_dataloader=inject_dataloader, only=_choices.listed(only, "--only", "setting", names()),
        skip=_choices.listed(skip, "--skip", "setting", names()),
    )  # fmt: skip
    plan = partial(_plan, profile, strict, words or [], terms)
    if dry_run:
        _show(plan)
    elif words is None:
        _export(plan, profile, emit)
    else:
        _run(plan, profile, words, strict, quiet)


def _command(words: list[str]) -> list[str] | None:
    if not words:
        return None
    if words[0] == "--":
        words = words[1:]
    elif words[0].startswith("-"):
        remedy = "options come before it: gputune apply [OPTIONS] PROFILE -- CMD"
        raise UsageError(f"{words[0]} is after the profile", remedy)
    if not words:
        raise UsageError("no command follows --", "name one: gputune apply PROFILE -- python train.py")
    return words


def _export(plan: Callable[[], Plan], path: str, emit: str) -> None:
    """Print the variables on stdout; for a shell also, on stderr, the table of settings and how to use the output."""
    from gputune.host.stderr import say, show
    from gputune.report.applied import print_applied
    from gputune.resources.printable import quoted
    from gputune.runtime.environment import exports, task_prolog
    from gputune.runtime.launch import disabled
    from gputune_start import inherited

    if disabled(os.environ):
        say("GPUTUNE_DISABLE=1: nothing is set")
        return
    planned = plan()
    if emit == TASK_PROLOG:
        show(task_prolog(planned, inherited()), end="")
        if line := summary(planned):
            say(line)
        return
    name = quoted(path)
    show(exports(planned), end="")
    print_applied(planned.applied, sys.stderr)
    show(
        f'Use it for a shell script:  eval "$(gputune apply {name})"\n'
        f"or for one command:         gputune apply {name} -- python train.py",
        err=True,
    )


def _run(plan: Callable[[], Plan], path: str, words: list[str], strict: bool, quiet: bool) -> NoReturn:
    from gputune.host.stderr import say
    from gputune.runtime.hook_file import not_reached
    from gputune.runtime.launch import disabled, launch
    from gputune_start import inherited

    environ = inherited()
    if disabled(environ):
        launch(words, environ)
    try:
        from gputune.runtime.environment import child  # here: a broken installation must not stop the command

        planned = plan()
        environ = child(planned, environ)
        if environ.get("GPUTUNE_PROBE") == "always":
            environ["GPUTUNE_PROBE"] = "missing"  # a nested apply is part of the same start
        line = "; ".join(filter(None, [summary(planned), planned.payload and not_reached(words)]))
        if line and not quiet:
            say(line)
    except Refused:
        raise
    except Exception as error:  # whatever it is, the command must run
        from gputune.cli import _faults

        _faults.keep(error)
        fault = str(error) if isinstance(error, GputuneError) else f"{path}: {type(error).__name__}: {error}"
        if strict:
            raise Refused(fault, "without --strict the command runs unchanged") from None
        say(f"{fault}; running {words[0]} unchanged")
    launch(words, environ, strict)


def _plan(path: str, strict: bool, words: list[str], terms: Terms) -> Plan:
    from gputune.host import Host
    from gputune.host.stderr import one_line
    from gputune.profile import load
    from gputune.runtime.environment import limit, plan
    from gputune.runtime.launch import starts_ranks
    from gputune.runtime.local_fingerprint import begin, local_fingerprint, own_threads
    from gputune.runtime.locate import AUTO, located

    host = Host()
    begin(host)
    try:
        loaded = None if path == AUTO else load(path)
        here = local_fingerprint(host)
    finally:
        host.release()
    terms = terms.but(
        numerics=limit(terms.numerics, host.environ), ranks=starts_ranks(words), own_threads=own_threads(host, here)
    )
    if loaded is not None:
        terms = terms.but(profile=Path(path).name)
    if loaded is None:
        from gputune.cli._probing_first import probe_first

        loaded = probe_first(host, here) or located(here, host.environ)
    planned = plan(loaded, here, host.environ, terms)
    if strict and planned.elsewhere:
        difference = f"measured on another machine ({', '.join(planned.differences)})"
        raise Refused(
            one_line(f"{path}: {', '.join(planned.elsewhere)} {difference}"),
            "measure this one with: gputune probe -o profile.yaml; or apply it anyway with --ignore-fingerprint",
        )
    return planned


def summary(planned: Plan) -> str:
    """One line about surprises: skipped, left out or overruled settings, and TF32 that was not requested."""
    parts = []
    if planned.elsewhere:
        count = sum(row.status == "applied" for row in planned.applied)
        parts.append(
            f"applied {count} settings, skipped {len(planned.elsewhere)} measured on another machine "
            f"({', '.join(planned.differences)}); --ignore-fingerprint applies them"
        )
    for entry, differences in planned.tuned_elsewhere.items():
        parts.append(
            f"{entry} was tuned on another machine ({', '.join(differences)}): not all of it is put in; tune it here"
        )
    if planned.no_room:
        parts.append(f"too many tuned programs: not applied to {', '.join(planned.no_room)}")
    if planned.left_out:
        parts.append(f"left out by numerics: {', '.join(planned.left_out)}")
    if planned.defeated:
        parts.append(f"NVIDIA_TF32_OVERRIDE defeats {', '.join(planned.defeated)}")
    elif planned.tf32_line:
        parts.append(planned.tf32_line)
    if planned.waiting:
        where = "into scripts that were not tuned" if planned.advice and planned.advice.programs else "in"
        names = sorted({name for values in planned.waiting.values() for name in values})
        parts.append(
            f"not put {where}: {', '.join(names)} (measured for: {', '.join(sorted(planned.waiting))}); "
            "--numerics mixed puts that into unchanged scripts"
        )
    return "; ".join(parts)


def _show(plan: Callable[[], Plan]) -> None:
    from gputune.host.stderr import show
    from gputune.report.applied import print_advice, print_applied

    planned = plan()
    print_applied(planned.applied, sys.stdout)
    print_advice(planned.advice, sys.stdout)
    if line := summary(planned):
        show(line)
