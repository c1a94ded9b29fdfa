"""The command line: each verb is a file, and the function of the same name in it is the command.

A verb's file imports only typer and light modules at its top, so that `--help`, `apply` and `check` wait for nothing
heavier. An expected fault is one line on stderr; `--debug` adds the traceback.
"""

import importlib
import os
import pkgutil
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from gputune.cli import _help, _streams
from gputune.errors import GputuneError, MeasureError, UsageError
from gputune.host.stderr import fill_standard_streams

INTERRUPTED = 130
"""128 + SIGINT: how a shell reports a program that Ctrl-C ended."""

NO_READER = 141
"""128 + SIGPIPE: how a shell reports a program whose reader has closed the pipe (`| head`)."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(
    name="gputune",
    cls=_help.Group,
    help="Check a GPU environment, measure what it can really do, and apply the settings that pay.",
    add_completion=False,  # its options are below, with gputune's own lines for what may fail
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if ctx.resilient_parsing:
        return
    from gputune.host.stderr import show
    from gputune.version import __version__

    verbose = ctx.params["verbose"]
    if wanted and verbose:
        from gputune.cli import _version
        from gputune.host import Host

        for line in _version.lines(Host()):
            show(line)
    elif wanted:
        show(__version__)
    elif verbose:
        raise UsageError("-v: belongs to --version", "type: gputune --version -v")
    if wanted:
        raise typer.Exit


def _install_completion(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        from gputune.cli import _completion_setup

        _completion_setup.install(ctx, wanted)


def _show_completion(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        from gputune.cli import _completion_setup

        _completion_setup.show(ctx, wanted)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version)
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", "--verbose", help="With --version: also Python, torch, the driver, CUDA and NVML.", is_eager=True
        ),
    ] = False,
    install_completion: Annotated[
        bool,
        typer.Option(
            "--install-completion",
            help="Let this shell (bash, zsh, fish) complete words.",
            callback=_install_completion,
        ),
    ] = False,
    show_completion: Annotated[
        bool, typer.Option("--show-completion", help="Print what that would install.", callback=_show_completion)
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
        settings = getattr(module, "CONTEXT", None)
        app.command(verb, cls=_help.Command, context_settings=settings)(getattr(module, file))


# Newer typer carries its own copy of click, older ones use the package: ask typer which class it raises.
_ClickException: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def run() -> NoReturn:
    """Run the command line, whose verb has been added, and exit with one of the documented codes. What else is raised
    is a bug in gputune, which `gputune_start` has a line and a code for.
    """
    debug = "--debug" in sys.argv[1:2]
    fill_standard_streams()
    _streams.prepare(sys.argv[1:])
    _exit_on_sigterm()
    try:
        code: Any = _run()
    except _ClickException as error:
        from gputune.cli import _mistakes

        _end(_mistakes.line(error), error.exit_code, debug)
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
    if code == INTERRUPTED:  # newer versions of typer return this code instead of raising
        _end("interrupted; nothing was written", INTERRUPTED, debug)
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> Any:
    """The verb's exit code. Raises BrokenPipeError where the reader of stdout has gone: typer would exit with 1."""
    try:
        code = app(standalone_mode=False, complete_var="")  # of no name: only `_completion` answers a shell
    except SystemExit as ended:
        if (
            type(sys.stdout).__name__ == "PacifyFlushWrapper" or ended.code == 1
        ):  # typer's own, or rich's in a help text
            raise BrokenPipeError from None
        raise
    except Exception as error:
        from gputune.cli import _faults

        _faults.keep(error)
        raise
    if sys.stdout:
        sys.stdout.flush()  # at exit Python would report a failure itself, with exit code 120
    return code


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
    """Exit through every `finally`, so that no child outlives this process.

    Launchers signal a whole process group, often twice; a second signal must not cut the cleaning up short.
    """
    for one in _ENDING:
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)


def _end(message: str, code: int, debug: bool) -> None:
    from gputune.host.stderr import say, show

    if debug and sys.exc_info()[0]:
        import traceback

        with suppress(OSError):
            show(traceback.format_exc(), end="", err=True)
    if message:
        say(message)
    sys.exit(code)
