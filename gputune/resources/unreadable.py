"""The exception for what cannot be read from the machine, with its cause as data."""

from typing import Literal

Cause = Literal[
    "not_supported",  # NVML: this hardware or driver has no such thing, which says nothing about health
    "no_such_call",  # NVML: this driver lacks the function, being older than it or newer
    "invalid_argument",  # NVML: there is no part with this number, such as a link beyond the last
    "gpu_lost",  # NVML: the GPU has fallen off the bus
    "needs_reset",  # NVML: the GPU answers again only after a reset
    "unknown_error",  # NVML: an internal driver error; by itself it says nothing about which GPU is to blame
    "timeout",  # NVML: the GPU did not answer the driver
    "no_power",  # NVML: the power cables of the card are not connected
    "implausible",  # NVML: more GPUs than any machine has
    "no_permission",  # NVML: this user or this cgroup may not ask, or not this GPU
    "driver_not_loaded",  # NVML: the library is there, and the kernel module is not
    "library_not_found",  # NVML: there is no libnvidia-ml.so.1
    "version_mismatch",  # NVML: the driver's kernel module and its libraries are of different versions
    "not_installed",  # a Python package: nvidia-ml-py or torch
    "import_failed",  # torch is installed, and importing it raised an error
    "fabric_not_ready",  # CUDA's error 802: Fabric Manager has not yet set up the NVLinks
    "stub_library",  # CUDA's error 34: the libcuda that was loaded is the one for linking, without a driver in it
    "no_device",  # CUDA's error 100 or 101: it finds no GPU
    "driver_combination",  # CUDA's error 803: libcuda and the kernel module do not fit together
    "compat_unsupported",  # CUDA's error 804: a compatibility package's libcuda, which this GPU does not support
    "uvm_broken",  # CUDA's error 999, most often from a kernel module nvidia-uvm that has lost its state
    "no_answer",  # a child process was still silent at its deadline; of NVML: in this very call
    "not_asked",  # NVML: an earlier call hung, or ended the process that asks
    "killed",  # a child process was ended by a signal
    "exited",  # a child process ended by itself without an answer
    "no_such_file",
    "no_gain",  # settings of a program that gain nothing in its whole starts
    "no_time",  # a bench that the budget of a probe has no time for
]
"""Why something could not be read, where code has to know: it asks this, never the reason's words."""

UNANSWERED = "Unanswered"
"""The type, in the `gaps` of a child's answers, of what it was asking for when it died or fell silent; the name of such
a gap is its cause."""


class Unreadable(Exception):
    """Something could not be read. The text is the reason that a `Gap` shows, and code may ask for `cause`."""

    def __init__(self, reason: str, cause: Cause | None = None) -> None:
        super().__init__(reason)
        self.cause = cause
