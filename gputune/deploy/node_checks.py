"""The checks that hold for a node as a whole.

The others ask about the container, the interpreter and the limits of the process that runs them, which on a node would
be gputune's own, or about a momentary state.
"""

NAMES = (
    "clock_lock", "compute_mode", "driver_mismatch", "driver_missing", "ecc_errors", "ecc_mode", "fabric_manager",
    "gpu_absent", "gpu_lost", "gpu_mix", "kernel_log", "mig_mode", "neighbours", "nvlink_down", "nvml_missing",
    "page_retirement", "pcie_width", "persistence_mode", "power_limit", "recovery_action", "row_remapping",
    "xid_errors",
)  # fmt: skip

PATIENT = "--timeout 20"
"""A driver without persistence mode starts each GPU when it is asked about it, which takes a second or more."""
MUST_TELL = ("driver_mismatch", "driver_missing", "gpu_lost", "nvml_missing")
"""The checks of which a node with a working driver always gets an answer: UNKNOWN is a fault there.

The others may be unknown on a healthy node, as Xid errors are where a container hides the kernel's log.
"""
