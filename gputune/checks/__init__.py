"""One question a file about this machine: facts and measurements in, findings out.

A check's file has a docstring, which is its help text (`gputune explain NAME`: what is asked, why it matters, how to fix
it, the source), and `check(facts, measurements)`, which yields Findings and reads nothing by itself. What only a load can
answer is NOT_APPLICABLE until a probe has measured. A check that fails is an UNKNOWN finding, never a crash; UNKNOWN
never counts as healthy, and NOT_APPLICABLE is said only where the check names the hardware or the situation that lacks
what it asks about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from gputune import plugins
from gputune.measurement import Measurement

if TYPE_CHECKING:
    from gputune.facts import Facts

Severity = Literal["OK", "NOT_APPLICABLE", "UNKNOWN", "WARNING", "ERROR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer. `remedy` says what to type, from WARNING up; `subject` names the GPU, file or variable it is about."""

    check: str = ""
    """The check's name, which `ask` fills in: a check need not repeat its own."""
    severity: Severity
    message: str
    remedy: str | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        if self.severity in ("WARNING", "ERROR") and not self.remedy:
            raise ValueError(f"{self.check}: a {self.severity} needs a remedy")


def names() -> list[str]:
    """Every check's name, which is its file's."""
    return list(plugins.names(__name__))


def load(name: str) -> plugins.Check:
    """The module of one check. Raises KeyError for a name that is none."""
    return cast(plugins.Check, plugins.load(__name__, name))


def run(
    facts: Facts, measurements: Sequence[Measurement] = (), only: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Ask every check, or `only` those."""
    wanted = [name for name in names() if only is None or name in only]
    return tuple(finding for name in wanted for finding in ask(name, facts, measurements))


def ask(name: str, facts: Facts, measurements: Sequence[Measurement] = ()) -> Iterator[Finding]:
    """One check's findings."""
    try:
        for finding in load(name).check(facts, measurements):
            yield replace(finding, check=name)
    except Exception as error:  # one check's fault must not silence the others
        yield Finding(check=name, severity="UNKNOWN", message=f"the check failed: {type(error).__name__}: {error}")
