"""The faults that a user can meet, each with a remedy and an exit code. The user reads one line, never a traceback."""

from collections.abc import Collection


class GputuneError(Exception):
    """An expected fault: `message` says what is wrong and where, `remedy` what to do; it sets the exit code."""

    exit_code = 2

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}"


class UsageError(GputuneError):
    """An option or argument is not valid, or an output cannot be written."""


def require(value: str, choices: Collection[str], kind: str, option: str = "") -> None:
    """Raises UsageError for a value that is not among the choices; names the nearest one or, if there are few, all."""
    from difflib import get_close_matches

    if value in choices:
        return
    close = get_close_matches(value.lower(), choices, n=1)
    few = f"choose from {', '.join(choices)}" if len(choices) < 10 else "'gputune explain' lists them"
    remedy = f"did you mean {close[0]}?" if close else few
    raise UsageError(f"{option} {value[:40]}: there is no such {kind}".lstrip(), remedy)


class ProfileError(GputuneError):
    """A profile is missing, unreadable or not valid."""


class RankError(GputuneError):
    """Ranks of one job compute with different settings, or did not answer."""

    exit_code = 1


class MeasureError(GputuneError):
    """Nothing could be measured, or the result could not be written."""

    exit_code = 3
