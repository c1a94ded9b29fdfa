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


def settings(text: str, option: str) -> tuple[str, ...]:
    """The settings of a list separated by commas. Raises UsageError for a name that is none."""
    from gputune.settings import names

    wanted = tuple(name for name in (word.strip() for word in text.split(",")) if name)
    for name in wanted:
        require(name, names(), "setting", option)
    return wanted
