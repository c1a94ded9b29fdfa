"""Checks: one question about the machine per file, answered from facts and measurements with findings.

A check's docstring is its help text (`gputune explain NAME`): the question, why it matters, how to fix it, the source.
`check(facts, measurements)` yields Findings and reads nothing else. Two constants are optional:

- `VARIABLES`: environment variables that it reads beyond those of torch and NVIDIA's libraries, which the facts always
  include. `check --json` prints their values, so never name a secret.
- `MOMENTARY = True`: its answer changes with what happens to be running, so a node is not labelled with it.

What only a load can show is NOT_APPLICABLE until a probe has measured. A check that raises becomes an UNKNOWN finding.
UNKNOWN never counts as healthy; NOT_APPLICABLE is only for hardware or situations that the check can name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, cast

from gputune import plugins
from gputune.measurement import Measurement

if TYPE_CHECKING:
    from gputune.facts import Facts

Severity = Literal["OK", "NOT_APPLICABLE", "UNKNOWN", "WARNING", "ERROR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A check's answer. `remedy` (from WARNING up) says what to type; `subject` is a GPU, file or variable."""

    check: str = ""
    """The check's name, filled in by `ask`."""
    severity: Severity
    message: str
    remedy: str | None = None
    subject: str | None = None
    fact: str | None = None
    """The fact that could not be read, if the message gives the reason of its Gap, which then needs no other line."""

    def __post_init__(self) -> None:
        if self.severity in ("WARNING", "ERROR") and not self.remedy:
            raise ValueError(f"{self.check}: a {self.severity} needs a remedy")


class Check(plugins.Plugin, Protocol):
    def check(self, facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]: ...


def names() -> list[str]:
    return list(plugins.names(__name__))


def load(name: str) -> Check:
    """The module of a check. Raises KeyError if there is no such check."""
    return cast(Check, plugins.load(__name__, name))


def variables() -> set[str]:
    return {variable for name in names() for variable in getattr(load(name), "VARIABLES", ())}


def momentary() -> set[str]:
    return {name for name in names() if getattr(load(name), "MOMENTARY", False)}


def run(
    facts: Facts, measurements: Sequence[Measurement] = (), only: Collection[str] | None = None
) -> tuple[Finding, ...]:
    wanted = [name for name in names() if only is None or name in only]
    return tuple(finding for name in wanted for finding in ask(name, facts, measurements))


def ask(name: str, facts: Facts, measurements: Sequence[Measurement] = ()) -> Iterator[Finding]:
    try:
        for finding in load(name).check(facts, measurements):
            yield replace(finding, check=name)
    except Exception as error:  # a bug in one check must not silence the others
        yield Finding(check=name, severity="UNKNOWN", message=f"the check failed: {type(error).__name__}: {error}")
