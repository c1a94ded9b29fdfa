"""The values that a shell offers for options and arguments with a closed list. Nothing heavy is imported for them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

AUTO = "auto"
SUFFIXES = (".yaml", ".yml", ".json")
PLAIN = re.compile(r"[A-Za-z0-9_.,/+@%-]+", re.ASCII)
"""What no shell takes for more than a name: zsh evaluates the answer, and any file may lie in the folder."""


def of(verb: str, name: str) -> Callable[[str], Iterable[str]] | None:
    """What lists the values of a verb's option or argument, given how the word begins; None where none are known."""
    return _OF_A_VERB.get((verb, name)) or _OF_ANY_VERB.get(name)


def _budgets(begun: str) -> Collection[str]:
    from gputune.bench_process import BUDGETS

    return BUDGETS


def _levels(begun: str) -> Collection[str]:
    from gputune.settings import LEVELS

    return LEVELS


def _settings(begun: str) -> Collection[str]:
    from gputune import settings

    return settings.names()


def _checks(begun: str) -> Collection[str]:
    from gputune import checks

    return checks.names()


def _benches(begun: str) -> Collection[str]:
    from gputune import benches, plugins

    return plugins.names(benches.__name__)  # their own order would import them all


def _topics(begun: str) -> Collection[str]:
    return [*_settings(begun), *_checks(begun), *_benches(begun), "launching"]


def _dtypes(begun: str) -> Collection[str]:
    from gputune.benches.matmul_shapes import DTYPES

    return DTYPES


def _fail_on(begun: str) -> Collection[str]:
    from gputune.report.severities import FAIL_ON

    return FAIL_ON


def _forms(begun: str) -> Collection[str]:
    from gputune.cli.apply import FORMS

    return FORMS


def _schemas(begun: str) -> Collection[str]:
    from gputune.cli.schema import SUBJECTS

    return SUBJECTS


def _for_slurm(begun: str) -> Collection[str]:
    from gputune.cli.deploy.slurm import KINDS

    return KINDS


def _profiles(begun: str) -> list[str]:
    """auto, and the profiles and folders that begin so. Nothing where the shell does better: it offers any file, goes
    on below a folder, and writes names that have to be quoted.
    """
    folder = Path(begun if begun.endswith("/") else Path(begun).parent)
    found = [AUTO] if AUTO.startswith(begun) else []
    with suppress(OSError):
        for entry in sorted(folder.iterdir()):
            name = begun[: begun.rfind("/") + 1] + entry.name
            if name.startswith(begun) and (entry.suffix in SUFFIXES or entry.is_dir()) and entry.name[0] != ".":
                found.append(f"{name}/" if entry.is_dir() else name)
    return found if AUTO in found and all(map(PLAIN.fullmatch, found)) and not begun.startswith("~") else []


_OF_ANY_VERB: Mapping[str, Callable[[str], Iterable[str]]] = {
    "--budget": _budgets,
    "--numerics": _levels,
    "--fail-on": _fail_on,
    "--emit": _forms,
    "--dtype": _dtypes,
    "--device": lambda begun: ("auto", "cpu", "cuda"),
}
_OF_A_VERB: Mapping[tuple[str, str], Callable[[str], Iterable[str]]] = {
    ("probe", "--device"): lambda begun: ("auto", "cpu", "cuda", "all"),
    ("probe", "--only"): _benches,
    ("check", "--only"): _checks,
    ("check", "--skip"): _checks,
    ("tune", "--only"): _settings,
    ("tune", "--profile"): _profiles,
    ("apply", "--only"): _settings,
    ("apply", "--skip"): _settings,
    ("apply", "profile"): _profiles,
    ("deploy slurm", "what"): _for_slurm,
    ("deploy slurm", "--profile"): _profiles,
    ("explain", "name"): _topics,
    ("schema", "--of"): _schemas,
}
