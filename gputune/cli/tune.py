"""`gputune tune`: find the settings with which a script that nobody changed runs fastest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gputune.cli import _choices
from gputune.errors import MeasureError, ProfileError, UsageError, require
from gputune.knobs import LEVELS, Numerics, names

if TYPE_CHECKING:
    from gputune.host import Host
    from gputune.profile import Profile
    from gputune.trials.result import TuneResult
    from gputune.trials.tuning import TuneRequest

NAMED = 5
"""The most files that are named at the end: more fill the terminal."""

CONTEXT = {"allow_interspersed_args": False}
"""Words after the options belong to the command."""

EPILOG = _choices.epilog("""
  # Find them, and write profile.yaml
  gputune tune -- python train.py
  # Without mixed precision
  gputune tune --numerics tf32 -- python train.py
  # A job of several ranks
  gputune tune -- torchrun --nproc-per-node=2 train.py
  # Afterwards: train with them
  gputune apply profile.yaml -- python train.py
""", faults=_choices.UNWRITTEN)  # fmt: skip


def tune(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="CMD", help="After --: the command, and its arguments.")
    ] = None,
    output: Annotated[
        Path, _choices.output("The profile that gets the result and keeps all else that it has; - is stdout.")
    ] = Path("profile.yaml"),
    profile: Annotated[
        str | None,
        typer.Option(
            parser=_choices.name,
            metavar="PROFILE|auto",
            help="Do not try what this profile, or the one of this machine, refused.",
            autocompletion=_choices.auto,
        ),
    ] = None,
    only: Annotated[str, _choices.some_settings("Change these settings alone.")] = "",
    steps: Annotated[
        int | None,
        _choices.count(
            "The most steps of the measuring run.", "400, or more where they are short or scatter", least=20, most=10**6
        ),
    ] = None,
    numerics: Annotated[str, _choices.LEVEL] = "mixed",
    guard_steps: Annotated[
        int, _choices.count("The steps of each run that guards the loss.", least=20, most=10**6)
    ] = 100,
    no_guard: Annotated[
        bool, typer.Option("--no-guard", help="Do not compare loss or outputs with FP32's; the result says so.")
    ] = False,
    allow_writes: Annotated[
        bool,
        typer.Option("--allow-writes", help="Let CMD write where it always writes, and trackers record."),
    ] = False,
    minutes: Annotated[
        float,
        typer.Option("--minutes", metavar="N", help="The most that the tune takes, after --wait.", min=0.1, max=1e4),
    ] = 10.0,
    wait: Annotated[
        float,
        typer.Option(
            metavar="MINUTES",
            help="Wait for a machine that others leave alone first, for at most so long.",
            min=0.0,
            max=1e4,
        ),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the program's part of the profile as JSON.")] = False,
) -> None:
    """Find the fastest settings for one script.

    CMD is started some ten times. The settings with which its own steps run fastest are written to a profile.

    What CMD writes meanwhile is thrown away, and experiment trackers are off; the first line says what is not covered.
    """
    from gputune.cli._output import earlier
    from gputune.host import Host
    from gputune.host.kept import temporary_folder
    from gputune.host.stderr import say, show
    from gputune.report.programs import answer, is_too_little, json_text, print_program, untold
    from gputune.report.progress import shown
    from gputune.trials.start import kept_log
    from gputune.trials.tuning import TuneRequest
    from gputune.trials.tuning import tune as run
    from gputune_start import inherited

    words = _command(command or [])
    require(numerics, LEVELS, "level", "--numerics")
    to_file = str(output) != "-"
    if to_file:
        earlier(output)
    host = Host()
    with temporary_folder() as folder, _what_it_wrote(folder):
        request = TuneRequest(
            command=words, environ=inherited(), folder=folder, profile=_narrowing(profile, host),
            only=_choices.listed(only, "--only", "setting", names()), steps=steps, level=cast(Numerics, numerics),
            guard_steps=None if no_guard else guard_steps, allow_writes=allow_writes,
            minutes=minutes, wait_minutes=wait,
        )  # fmt: skip
        request = replace(request, above_copies=_begin(request))
        with kept_log(host.environ, words) as log, shown() as progress:
            result = run(request, log, host=host, progress=progress)
    is_told = result.gain is not None or not (result.disturbed or is_too_little(result.program))
    kept = _write(result, output, host) if is_told else ""
    if as_json:
        show(json_text(result.program))
    if sys.stderr is not None:
        print_program(result, sys.stderr)
        if kept:
            say(kept)
        if is_told and not (kept and result.gain is None):
            show(answer(result, output if to_file else None, words), err=True)
    if not is_told:
        raise MeasureError(*untold(result, words))


def _command(words: list[str]) -> list[str]:
    from gputune.cli._programs import require_a_command

    if words[:1] == ["--"]:
        words = words[1:]
    if not words or not words[0].strip():
        raise UsageError("no command was given", "name the one to tune: gputune tune -- python train.py")
    if words[0].startswith("-"):
        raise UsageError(f"{words[0]} is no command", "options of gputune's stand before --; see: gputune tune --help")
    require_a_command(words, "tune")
    return words


def _narrowing(named: str | None, host: Host) -> Profile | None:
    from gputune.profile import load
    from gputune.runtime.local_fingerprint import local_fingerprint
    from gputune.runtime.locate import AUTO, located

    if named is None:
        return None
    return located(local_fingerprint(host), host.environ) if named == AUTO else load(named)


def _begin(request: TuneRequest) -> bool:
    """Say what happens to what the command writes. Whether it runs above copies of the user's folders."""
    from gputune.host.stderr import say
    from gputune.runtime.hook_file import not_reached
    from gputune.runtime.launch import disabled
    from gputune.trials.user_files import why_no_copies

    if disabled(request.environ):
        raise UsageError("GPUTUNE_DISABLE=1 is set, which switches all of gputune off", "unset it")
    if why := not_reached(request.command):
        raise UsageError(f"{request.command[0]}: {why}", "name a command whose Python can be reached")
    why = "" if request.allow_writes else why_no_copies(request.folder, request.command, request.environ)
    if request.allow_writes:
        writes = "it writes what it always writes"
    elif why:
        writes = (
            "what Python code writes goes to a scratch folder, but what other programs write that it starts, they "
            f"write (it cannot run above copies of your folders here: {why})"
        )
    else:
        writes = "it runs above copies of your folders: what it writes is thrown away, but for caches and /dev/shm"
    say(f"starting {request.command[0]} some ten times, with an empty standard input; {writes}")
    return not (why or request.allow_writes)


@contextmanager
def _what_it_wrote(folder: Path) -> Iterator[None]:
    """Name at the end what the command has written to the user's folders."""
    from gputune.host.stderr import say
    from gputune.trials.user_files import WRITTEN

    try:
        yield
    finally:
        with suppress(OSError):
            paths = list(dict.fromkeys((folder / WRITTEN).read_text(errors="surrogateescape").splitlines()))
            more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
            say(f"it has written to your folders: {', '.join(paths[:NAMED])}{more}")


def _write(result: TuneResult, output: Path, host: Host) -> str:
    """Write a result to the profile and the cached one. Return what is said if an earlier one stands, or nothing."""
    from gputune.cli._output import write_over
    from gputune.host.stderr import say
    from gputune.profile import places
    from gputune.report.standing import elsewhere, with_tuned
    from gputune.runtime.local_fingerprint import local_fingerprint

    program = result.program

    def tuned(now: Profile | None) -> Profile:
        if now and (device := elsewhere(now, program)):
            raise ProfileError(f"-o {output}: {program.entry} was tuned there on {device}", "choose another name")
        return with_tuned(now or result.profile, program)

    stands = program not in write_over(output, tuned).programs
    here = local_fingerprint(host)
    try:
        places.keep(tuned(places.latest(here, host.environ)), here, host.environ)
    except MeasureError as error:
        say(f"not kept for gputune apply auto: {error}")
    certain = f"{output} keeps what an earlier tune of {program.entry} was certain of"
    return f"{certain}, which this one did not try or is not certain of" if stands else ""
