"""The command line: each verb is a file, and the function of the same name in it is the command.

A verb's file imports only typer and light modules at its top, so that `--help`, `apply` and `check` wait for nothing
heavier. An expected fault is one line on stderr; `--debug` adds the traceback.
"""

import importlib
import io
import os
import pkgutil
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from gputune.errors import GputuneError, MeasureError

INTERRUPTED = 130
"""128 + SIGINT: how a shell reports a program that Ctrl-C ended."""

NO_READER = 141
"""128 + SIGPIPE: how a shell reports a program whose reader has closed the pipe (`| head`)."""

FAULT = 70
"""EX_SOFTWARE of sysexits.h: a bug in gputune."""

app = typer.Typer(
    name="gputune",
    help="Check a GPU environment, measure what it can really do, and apply the settings that pay.",
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


def add_verbs(only: str | None = None) -> None:
    """Register every verb as a command of `app`, or just the named one: importing all costs `gputune apply` 15 ms."""
    files = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    verbs = {file.replace("_", "-"): file for file in files}
    for verb, file in {only: verbs[only]}.items() if only in verbs else verbs.items():
        module = importlib.import_module(f"{__name__}.{file}")
        if hasattr(module, "GROUP"):  # with subcommands
            app.add_typer(module.GROUP, name=verb)
            continue
        app.command(verb, context_settings=getattr(module, "CONTEXT", None))(getattr(module, file))


# Newer typer carries its own copy of click, older ones use the package: ask typer which class it raises.
_ClickException: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main() -> None:
    """Run the command line and exit with one of the documented codes, whatever happens."""
    debug = "--debug" in sys.argv[1:2]
    add_verbs(sys.argv[1] if sys.argv[1:] else None)
    _replace_unencodable_characters()
    _exit_on_sigterm()
    try:
        code: Any = _run()
    except _ClickException as error:
        message = error.format_message()  # empty where the help text has been printed
        command = error.ctx.command_path if getattr(error, "ctx", None) else "gputune"
        _end(f"{message} (see: {command} --help)" if message else "", error.exit_code, debug)
    except GputuneError as error:
        _end(str(error), error.exit_code, debug)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        sys.exit(NO_READER)
    except OSError as error:  # of stdout or stderr: other files raise a GputuneError
        _discard_output()
        _end(f"{error.filename or 'output'}: {error.strerror}", MeasureError.exit_code, debug)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}; this is a bug in gputune"
        _end(f"{fault}; gputune --debug shows the traceback", FAULT, debug)
    if code == INTERRUPTED:  # newer versions of typer return this code instead of raising
        _end("interrupted; nothing was written", INTERRUPTED, debug)
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> Any:
    """The verb's exit code. Raises BrokenPipeError where the reader of stdout has gone: typer would exit with 1."""
    try:
        code = app(standalone_mode=False)
    except SystemExit:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            raise BrokenPipeError from None
        raise
    if sys.stdout:
        sys.stdout.flush()  # at exit Python would report a failure itself, with exit code 120
    return code


def _discard_output() -> None:
    """Send stdout to /dev/null: at exit Python tries again to write what is still in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _exit_on_sigterm() -> None:
    """Install the handler, unless SIGTERM is ignored: the command of `gputune apply` inherits that."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: object) -> None:
    """Exit through every `finally`, so that no child outlives this process.

    Launchers signal a whole process group, often twice; a second signal must not cut the cleaning up short.
    """
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _replace_unencodable_characters() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _end(message: str, code: int, debug: bool) -> None:
    from gputune.host.stderr import one_line

    if debug:
        import traceback

        traceback.print_exc()
    with suppress(OSError):
        if message:
            print(f"gputune: {one_line(message)}", file=sys.stderr)
    sys.exit(code)
