"""The command line: each verb is a file, and the function of the same name in it is the command.

A verb's file imports only typer and light modules at its top, so that `--help`, `apply` and `check` wait for nothing
heavier. An expected fault is one line on stderr; `--debug` adds the traceback.
"""

import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from gputune.errors import GputuneError, MeasureError
from gputune.host.stderr import fill_standard_streams, no_sizes

INTERRUPTED = 130
"""128 + SIGINT: how a shell reports a program that Ctrl-C ended."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)
VERBS = (
    "check", "tune", "probe", "show", "apply", "status", "batch-size", "merge", "explain", "install-hook", "bug-report",
    "deploy",
)  # fmt: skip
"""In the order of a person's need; typer lists groups last."""
REMOVED = {
    "pad": "gputune explain dimension_multiple, and for a profile's own: gputune show --all PROFILE",
    "schema": "gputune explain profile-schema, check-schema or status-schema",
    "--each": "for each GPU: gputune probe --device cuda:N -o FILE",
    "-v": "gputune bug-report",
    "--verbose": "gputune bug-report",
}
"""Verbs and options that are gone, and what replaces them."""

EPILOG = """\b
Examples:
  # What is wrong here
  gputune check
  # Find the fastest settings for one script
  gputune tune -- python train.py
  # Run it with what was found, here or for all programs
  gputune apply auto -- python train.py

\b
Exit codes:
  0              success
  1              check: a finding at or above --fail-on; status: a setting failed
  2              wrong usage, or a file that cannot be read
  3              nothing could be measured, or the result could not be written
  70             a bug in gputune, or it cannot start
  78             refused by apply --strict
  126, 127       apply: CMD cannot be run, or is not found; otherwise its own code
  129, 130, 143  hung up, interrupted, terminated
  141            the reader of stdout went away
"""

app = typer.Typer(
    name="gputune",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EPILOG,
    help="Check a GPU environment, measure what it can really do, and apply the settings that pay.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from gputune.host.stderr import show
        from gputune.version import __version__

        show(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass


def add_verbs(only: str | None = None) -> None:
    """Register every verb as a command of `app`, or just the named one: importing all costs `gputune apply` 15 ms."""
    for verb in (only,) if only in VERBS else VERBS:
        file = verb.replace("-", "_")
        module = importlib.import_module(f"{__name__}.{file}")
        if hasattr(module, "GROUP"):  # with subcommands
            app.add_typer(module.GROUP, name=verb)
            continue
        settings = getattr(module, "CONTEXT", None)
        app.command(verb, epilog=module.EPILOG, context_settings=settings)(getattr(module, file))


# Newer typer carries its own copy of click, older ones use the package: ask typer which class it raises.
_ClickException: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def run(complete: str) -> NoReturn:
    """Run the command line, whose verb has been added, and exit with one of the documented codes. `complete` is the
    variable with which a shell asks what may follow. Anything else that is raised is a bug in gputune, for which
    `gputune_start` has a line and a code.
    """
    debug = "--debug" in sys.argv[1:2]
    fill_standard_streams()
    _prepare_streams(sys.argv[1:])
    _exit_on_sigterm()
    try:
        code: Any = _run(complete)
    except _ClickException as error:
        _end(_misused(error), error.exit_code, debug)
    except GputuneError as error:
        _end(str(error), error.exit_code, debug)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except _Terminated as ended:
        _end("terminated; nothing was written", ended.number, debug)
    except BrokenPipeError:
        _discard_output()
        sys.exit(128 + signal.SIGPIPE)  # as a shell reports a program whose reader has closed the pipe (`| head`)
    except OSError as error:  # of stdout or stderr: other files raise a GputuneError
        _discard_output()
        _end(f"{error.filename or 'output'}: {error.strerror}", MeasureError.exit_code, debug)
    if code == INTERRUPTED:  # newer versions of typer return this code instead of raising
        _end("interrupted; nothing was written", INTERRUPTED, debug)
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_streams(words: Sequence[str]) -> None:
    """Make both streams wait for a slow reader, and write `?` for what their encoding lacks. Where `words`, gputune's
    arguments, run no command, remove the variables with which typer cannot print its help.
    """
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)
    ours = words[: words.index("--")] if "--" in words else words
    verb = next((word for word in words if not word.startswith("-")), "")
    runs_a_command = verb in ("apply", "tune") and not {"--help", "-h"}.intersection(ours)
    if not runs_a_command:
        for name in no_sizes(os.environ):
            del os.environ[name]


class _Patient(io.FileIO):
    """Waits where another process has made the pipe or terminal non-blocking, as Node.js and ssh do: Python's own
    stream raises there, and loses what it held.
    """

    def write(self, data: Any) -> int:
        while (count := super().write(data)) is None:
            import select

            poll = select.poll()
            poll.register(self, select.POLLOUT)
            poll.poll()
        return count


def _patient(stream: Any) -> Any:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    file = getattr(stream.buffer, "raw", stream.buffer)  # under PYTHONUNBUFFERED there is no buffer
    if type(file) is not io.FileIO:
        stream.reconfigure(errors="replace")
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Patient(file.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering or stream.write_through,
    )


def _run(complete: str) -> Any:
    """The verb's exit code. Raises BrokenPipeError where the reader of stdout has gone: typer would exit with 1."""
    try:
        # A shell asks at Tab without a word. Below it, a program may have inherited the variable with which it asks.
        code = app(prog_name="gputune", standalone_mode=False, complete_var="" if sys.argv[1:] else complete)
    except SystemExit as ended:
        is_typers = type(sys.stdout).__name__ == "PacifyFlushWrapper"
        if is_typers or ended.code == 1:  # rich's in a help text
            raise BrokenPipeError from None
        raise
    except _ClickException as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            raise
        from gputune.host.stderr import show

        show(error.format_message())
        code = error.exit_code
    except Exception as error:
        from gputune.cli import _faults

        _faults.keep(error)
        raise
    if sys.stdout:
        sys.stdout.flush()  # at exit Python would report a failure itself, with exit code 120
    return code


def _misused(error: Any) -> str:
    ctx = getattr(error, "ctx", None)
    message: str = error.format_message().strip().rstrip(".")
    missing = re.match(r"No such (?:option: |command ')([\w-]+)", message)
    if missing and missing[1] in REMOVED:
        return f"{missing[1]}: was removed; use {REMOVED[missing[1]]}"
    if "Did you mean" not in message and "Possible options" not in message:
        from gputune.cli._programs import instead

        is_misplaced = message.startswith(("No such command", "Got unexpected extra argument"))
        if is_misplaced and (to_run := instead(sys.argv[1:])):
            return f"{message[:1].lower()}{message[1:]}; {to_run}"
        message += f"; see: {ctx.command_path if ctx else ' '.join(['gputune', *sys.argv[1:2]])} --help"
    return message[:1].lower() + message[1:]


def _discard_output() -> None:
    """Send stdout to /dev/null: at exit Python tries again to write what is still in its buffer."""
    with suppress(OSError):  # without /dev there is nowhere to send it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _exit_on_sigterm() -> None:
    """Install the handler, also for the SIGHUP of a terminal that is closed. What is ignored, as below nohup, stays so:
    the command of `gputune apply` inherits that.
    """
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminated)


def _terminated(number: int, frame: object) -> None:
    """Exit through every `finally`, so that no child outlives this process. A second signal does not cut that short."""
    for one in _ENDING:
        signal.signal(one, signal.SIG_IGN)
    raise _Terminated(128 + number)


class _Terminated(SystemExit):
    """SIGTERM or SIGHUP has come; `number` is the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(message: str, code: int, debug: bool) -> None:
    from gputune.host.stderr import say, show

    if debug and sys.exc_info()[0]:
        import traceback

        with suppress(OSError):
            show(traceback.format_exc(), end="", err=True)
    if message:
        say(message)
    sys.exit(code)
