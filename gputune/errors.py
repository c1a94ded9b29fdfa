"""What can go wrong for a user, each with its remedy and exit code. One line reaches the user, never a traceback."""


class GputuneError(Exception):
    """An expected fault.

    `message` says what and where, `remedy` what to do about it; `exit_code` is the process's.
    """

    exit_code = 2

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}"


class UsageError(GputuneError):
    """An option or argument that does not fit, or an output that cannot be written."""


class ProfileError(GputuneError):
    """A profile that is missing, unreadable or not valid."""


class RankError(GputuneError):
    """Ranks of one job compute with different settings, or did not say with which."""

    exit_code = 1


class MeasureError(GputuneError):
    """Nothing could be measured, or what was measured could not be kept."""

    exit_code = 3
