"""The version of gputune, and how versions are compared."""

import re

__version__ = "0.6.0"

_FORM = re.compile(
    r"([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})(?:(?:a|b|rc)[0-9]{1,6})?(?:\.(?:post|dev)[0-9]{1,6}){0,2}"
)


def release(version: str) -> tuple[int, ...]:
    """The three numbers of a version, for comparison; 0.3.0rc1 counts as 0.3.0. Raises ValueError."""
    if not (numbers := _FORM.fullmatch(version)):
        raise ValueError(version)
    return tuple(map(int, numbers.groups()))
