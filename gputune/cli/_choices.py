"""The values that an option or argument takes: completed at Tab, and tested. Nothing heavy is imported for them."""

from collections.abc import Callable, Collection
from pathlib import Path

import typer

from gputune.errors import UsageError, require

AN_INTERPRETER = "name an interpreter, as in --python .venv/bin/python"


def name(given: str) -> str:
    """A name, or a path, as it was given. Raises BadParameter, to which typer adds the option, where it is blank.

    Python takes an empty path for the working folder, so something would be written where nobody meant it to be.
    """
    if not given.strip():
        raise typer.BadParameter("it is empty; is the variable set that it comes from?")
    return given


def path(given: str) -> Path:
    return Path(name(str(given)))


def settings(text: str, option: str) -> tuple[str, ...]:
    """The settings of a list separated by commas. Raises UsageError for a name that is none."""
    from gputune.knobs import names

    wanted = tuple(name for name in (word.strip() for word in text.split(",")) if name)
    for name in wanted:
        require(name, names(), "setting", option)
    return wanted


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


def devices() -> list[str]:
    return ["auto", "cpu", "cuda"]


def node_devices() -> list[str]:
    return [*devices(), "all"]


def budgets() -> Collection[str]:
    from gputune.bench_process import BUDGETS

    return BUDGETS


def levels() -> Collection[str]:
    from gputune.knobs import LEVELS

    return LEVELS


def fail_on() -> Collection[str]:
    from gputune.report.severities import FAIL_ON

    return FAIL_ON


def topics() -> list[str]:
    return [*_settings(), *_checks(), *_benches(), "launching", *SCHEMAS]


SCHEMAS = ("profile-schema", "check-schema", "status-schema")


def _settings() -> Collection[str]:
    from gputune import knobs

    return knobs.names()


def _checks() -> Collection[str]:
    from gputune import checks

    return checks.names()


def _benches() -> Collection[str]:
    from gputune import benches, plugins

    return plugins.names(benches.__name__)  # their own order would import them all


def _several(names: Callable[[], Collection[str]]) -> Callable[[str], list[str]]:
    def completed(incomplete: str) -> list[str]:
        done, comma, _ = incomplete.rpartition(",")
        return [f"{done}{comma}{name}" for name in names()]

    return completed


some_settings, some_checks, some_benches = map(_several, (_settings, _checks, _benches))

PYTHON = typer.Option(
    parser=name, metavar="PATH", help="The interpreter whose torch is meant.", show_default="gputune's own"
)
LEVEL = typer.Option(
    metavar="LEVEL", help="How far results may change: exact, rounding, tf32 or mixed.", autocompletion=levels
)
