"""Validation of an argument with a closed set of values."""

from collections.abc import Collection

from gputune.errors import UsageError


def require(value: str, choices: Collection[str], kind: str, option: str = "") -> None:
    """Raises UsageError for a value that is not among the choices; names the nearest one or, if there are few, all."""
    from difflib import get_close_matches

    if value in choices:
        return
    close = get_close_matches(value.lower(), choices, n=1)
    few = f"choose from {', '.join(choices)}" if len(choices) < 10 else "'gputune explain' lists them"
    remedy = f"did you mean {close[0]}?" if close else few
    raise UsageError(f"{option} {value[:40]}: there is no such {kind}".lstrip(), remedy)
