"""The exception for what cannot be read from the machine, with its cause as data."""

from typing import Literal

Cause = Literal[
    "not_supported",  # NVML: this hardware or driver has no such thing, which says nothing about health
    "no_such_call",  # NVML: this driver lacks the function, being older than it or newer
    "invalid_argument",  # NVML: there is no part with this number, such as a link beyond the last
    "gpu_lost",  # NVML: the GPU has fallen off the bus
    "needs_reset",  # NVML: the GPU answers again only after a reset
    "version_mismatch",  # NVML: the driver's kernel module and its libraries are of different versions
    "not_installed",  # a Python package: nvidia-ml-py or torch
    "import_failed",  # torch is installed, and importing it raised an error
    "fabric_not_ready",  # CUDA's error 802: Fabric Manager has not yet set up the NVLinks
    "no_answer",  # a child process was still silent at its deadline
    "killed",  # a child process was ended by a signal
    "exited",  # a child process ended by itself without an answer
    "no_such_file",
]
"""Why something could not be read, where code has to know: it asks this, never the reason's words."""


class Unreadable(Exception):
    """Something could not be read.

    The text is the reason that a `Gap` shows, and `cause` is what code may ask about it.
    """

    def __init__(self, reason: str, cause: Cause | None = None) -> None:
        super().__init__(reason)
        self.cause = cause
