"""What is raised where the machine does not answer."""

from __future__ import annotations

from typing import Literal

Cause = Literal["not_supported", "gpu_lost", "needs_reset", "version_mismatch", "not_installed", "no_answer", "killed"]
"""What is told apart of the reasons for a gap: code asks this, and never the reason's words."""


class Unreadable(Exception):
    """Something could not be read; the text is the reason that a Gap will show, and `cause` what code may ask of it."""

    def __init__(self, reason: str, cause: Cause | None = None) -> None:
        super().__init__(reason)
        self.cause = cause
