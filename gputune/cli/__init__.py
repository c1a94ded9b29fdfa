"""The command line: one file a verb, whose function of the same name is the command.

A verb's file imports only typer at its top: `--help`, `apply` and `check` must not wait for anything heavier. Expected
faults reach the user as one line on stderr; a traceback only with `--debug`.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended, as shells count it."""

NO_READER = 141
"""The exit code of a program whose reader went away (`| head`), as shells count it."""

FAULT = 70
"""What sysexits.h calls EX_SOFTWARE."""

app = typer.Typer(
    name="gputune",
    help="Check a GPU environment, measure what it can really do, and apply the flags that pay.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gputune import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


def add_verbs(asked: str | None = None) -> None:
    """Make every verb a command of `app`, or only the one that was asked for: the others would cost `gputune apply` 15 ms."""
    files = [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    verbs = {file.replace("_", "-"): file for file in files}
    for verb, file in {asked: verbs[asked]}.items() if asked in verbs else verbs.items():
        module = importlib.import_module(f"{__name__}.{file}")
        if hasattr(module, "GROUP"):  # verbs of its own
            app.add_typer(module.GROUP, name=verb)
            continue
        app.command(verb, context_settings=getattr(module, "CONTEXT", None))(getattr(module, file))


# Newer typer carries its own copy of click, older ones use the package: ask typer which class it raises.
_ClickException: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main() -> None:
    """Run the command line; every way out is an exit code of the documented ones."""
    from gputune.errors import GputuneError, MeasureError

    debug = "--debug" in sys.argv[1:2]
    add_verbs(sys.argv[1] if sys.argv[1:] else None)
    _write_what_the_encoding_lacks_as_a_question_mark()
    _heed_termination()
    try:
        code: Any = _run()
    except _ClickException as error:
        message = error.format_message()  # empty where the help was the answer
        _end(f"{message} (see: {_help_of(error)})" if message else "", error.exit_code, debug)
    except GputuneError as error:
        _end(str(error), error.exit_code, debug)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        sys.exit(NO_READER)
    except OSError as error:  # stdout or stderr: what gputune reads and writes otherwise has errors of its own
        _drop_output()
        _end(f"{error.filename or 'output'}: {error.strerror}", MeasureError.exit_code, debug)
    except Exception as error:
        _end(
            f"{type(error).__name__}: {error}; this is a fault of gputune's: see it whole with gputune --debug",
            FAULT,
            debug,
        )
    if code == INTERRUPTED:  # newer typer turns the interrupt into this exit code by itself
        _end("interrupted; nothing was written", INTERRUPTED, debug)
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> Any:
    """The verb's answer. BrokenPipeError where the reader of stdout is gone, which typer would call exit code 1."""
    try:
        code = app(standalone_mode=False)
    except SystemExit:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            raise BrokenPipeError from None
        raise
    if sys.stdout:
        sys.stdout.flush()  # at exit its error would be Python's, with exit code 120
    return code


def _drop_output() -> None:
    """Let what could not be written go: it would be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _heed_termination() -> None:
    """Unless it is ignored, which the command of an apply is to inherit."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: object) -> None:
    """Leave through every `finally`, so that no child outlives this process. A second signal, as launchers send that signal a
    whole group, would cut that short.
    """
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _write_what_the_encoding_lacks_as_a_question_mark() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _help_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context else "gputune --help"


def _end(message: str, code: int, debug: bool) -> None:
    from gputune.host.stderr import one_line

    if debug:
        import traceback

        traceback.print_exc()
    with suppress(OSError):
        if message:
            print(f"gputune: {one_line(message)}", file=sys.stderr)
    sys.exit(code)
