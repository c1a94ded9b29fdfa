"""Validation of what a user puts into a file that other programs run. Each function raises UsageError."""

import re
from collections.abc import Sequence

from gputune.errors import UsageError

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS-1123 label, which is valid as the name of any Kubernetes object."""

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,499}")


def names(**named: str | None) -> None:
    """Check options as Kubernetes names. They are passed with _ for -, and as None where they were not given."""
    for option, value in named.items():
        if value is not None and not _LABEL.fullmatch(value):
            raise UsageError(
                f"--{option.replace('_', '-')} {value[:80]}: is not a valid Kubernetes name",
                "use at most 63 of a-z, 0-9 and -, with a letter or a digit at both ends",
            )


def image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        fault = f"--image {value[:80]}: is not a valid image name"
        raise UsageError(fault, "write it as in --image registry/gputune:1.0")
    return value


def command(words: Sequence[str] | None) -> list[str]:
    words = list(words or [])
    if words and not words[0]:
        raise UsageError("the command is empty", "name a program: -- python train.py")
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        raise UsageError("the command is not UTF-8 text", "use names and options that are UTF-8") from None
    return words
