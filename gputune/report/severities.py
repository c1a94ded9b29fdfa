"""The order of severities, and the worst of several."""

from collections.abc import Iterable

from gputune.checks import Severity

WORST_FIRST: tuple[Severity, ...] = ("ERROR", "WARNING", "UNKNOWN", "OK", "NOT_APPLICABLE")


def worst(pairs: Iterable[tuple[str, Severity]]) -> dict[str, Severity]:
    """The worst severity for each name, in the order in which the names first occur."""
    by_name: dict[str, Severity] = {}
    for name, severity in pairs:
        by_name[name] = min(by_name.get(name, severity), severity, key=WORST_FIRST.index)
    return by_name
