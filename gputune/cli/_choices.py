"""The values that an option or argument takes: completed at Tab, and tested. Nothing heavy is imported for them."""

import importlib
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import typer

from gputune import plugins
from gputune.errors import UsageError, require
from gputune.knobs import LEVELS

UNWRITTEN = "3 nothing could be measured, or the result could not be written"
AN_INTERPRETER = "name an interpreter, as in --python .venv/bin/python"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS-1123 label, which is valid as the name of any Kubernetes object."""
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,499}")


def epilog(examples: str, success: str = "0 success", faults: str = "") -> str:
    """The end of a verb's help: its examples, as they stand, and its exit codes, with those of its own `faults`."""
    usage = "2 wrong usage, or a file that cannot be read"
    codes = "; ".join(filter(None, (success, usage, faults, "others: gputune --help.")))
    return f"\b\nExamples:{examples.rstrip()}\n\nExit codes: {codes}\n"


def name(given: str) -> str:
    """A name, or a path, as it was given. Raises BadParameter, to which typer adds the option, where it is blank.

    Python takes an empty path for the working folder, so something would be written where nobody meant it to be.
    """
    if not given.strip():
        raise typer.BadParameter("it is empty; is the variable set that it comes from?")
    return given


def path(given: str) -> Path:
    return Path(name(str(given)))


def kubernetes_names(**named: str | None) -> None:
    """Check options as Kubernetes names. They are passed with _ for -, and as None where they were not given."""
    for option, value in named.items():
        if value is not None and not _LABEL.fullmatch(value):
            raise UsageError(
                f"--{option.replace('_', '-')} {value[:80]}: is not a valid Kubernetes name",
                "use at most 63 of a-z, 0-9 and -, with a letter or a digit at both ends",
            )


def image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        fault = f"--image {value[:80]}: is not a valid image name"
        raise UsageError(fault, "write it as in --image registry/gputune:1.0")
    return value


def command(words: Sequence[str] | None) -> list[str]:
    words = list(words or [])
    if words and not words[0]:
        raise UsageError("the command is empty", "name a program: -- python train.py")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise UsageError("the command is not UTF-8 text", "use names and options that are UTF-8") from None
    return words


def listed(values: str | list[str], option: str, kind: str, known: Collection[str]) -> tuple[str, ...]:
    """The names in a list separated by commas, or in several. Raises UsageError for one that is not known."""
    words = (values if isinstance(values, str) else ",".join(values)).split(",")
    names = tuple(name for name in map(str.strip, words) if name)
    for name in names:
        require(name, known, kind, option)
    return names


def interpreter(python: str | None) -> str | None:
    """The path of the program that --python names; None without the option. Raises UsageError if there is none."""
    from gputune.host import Host

    found = Host().which(python) if python else None
    if python and found is None:
        raise UsageError(f"--python {python}: no executable has that name", AN_INTERPRETER)
    return found


def auto(incomplete: str) -> list[str]:
    """`auto` once it has been begun. Otherwise the shell completes files: it alone quotes their names safely."""
    return ["auto"] if incomplete and "auto".startswith(incomplete) else []


def budgets() -> Collection[str]:
    from gputune.bench_process import BUDGETS

    return BUDGETS


def fail_on() -> Collection[str]:
    from gputune.report.severities import FAIL_ON

    return FAIL_ON


SCHEMAS = ("profile-schema", "check-schema", "status-schema")


def topics() -> list[str]:
    packages = ("gputune.knobs", "gputune.checks", "gputune.benches")
    return [*(name for package in packages for name in _names(package)), "launching", *SCHEMAS]


def _names(package: str) -> tuple[str, ...]:
    """The benches' own order would import them all."""
    importlib.import_module(package)
    return plugins.names(package)


def _several(package: str) -> Callable[[str], Any]:
    """Makes, from its help, an option that takes names of a package's plug-ins."""

    def completed(incomplete: str) -> list[str]:
        done, comma, _ = incomplete.rpartition(",")
        return [f"{done}{comma}{name}" for name in _names(package)]

    return lambda text: typer.Option(metavar="NAME,...", help=text, autocompletion=completed)


some_settings, some_checks, some_benches = map(_several, ("gputune.knobs", "gputune.checks", "gputune.benches"))


def output(text: str, show_default: bool | str = True) -> Any:
    """The option for the file that a verb writes, from its help."""
    return typer.Option("-o", "--output", parser=path, metavar="FILE", help=text, show_default=show_default)


def count(text: str, show_default: bool | str = True, least: int = 1, most: int | None = None) -> Any:
    """An option that takes a whole number, from its help."""
    return typer.Option(metavar="N", help=text, min=least, max=most, show_default=show_default)


def word(metavar: str, text: str, offered: Callable[[], Collection[str]], *names: str) -> Any:
    """An option that takes one of a few words, from its help. typer 0.27 names an option as its metavar, where that is
    its parameter's name in capitals; so the name is given there.
    """
    return typer.Option(*names, metavar=metavar, help=text, autocompletion=offered)


def place(metavar: str, text: str) -> Any:
    """An option that takes a path, from its help."""
    return typer.Option(parser=path, metavar=metavar, help=text)


PYTHON = typer.Option(parser=name, metavar="PATH", help="The interpreter that is meant.", show_default="gputune's own")
LEVEL = word("LEVEL", "How far results may change: exact, rounding, tf32 or mixed.", lambda: LEVELS)
