"""The exception for what cannot be read from the machine, with its cause as data."""

from __future__ import annotations

from typing import Literal

Cause = Literal["not_supported", "gpu_lost", "needs_reset", "version_mismatch", "not_installed", "no_answer", "killed"]
"""The causes that code distinguishes; it never examines the text of a reason."""


class Unreadable(Exception):
    """Something could not be read. The text is the reason that a Gap shows to a person; `cause` is for code."""

    def __init__(self, reason: str, cause: Cause | None = None) -> None:
        super().__init__(reason)
        self.cause = cause
