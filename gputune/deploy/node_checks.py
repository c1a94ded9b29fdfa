"""The checks that hold for a node as a whole.

The others ask about the container, the interpreter and the limits of the process that runs them, which on a node would
be gputune's own, or about a momentary state.
"""

NAMES = (
    "clock_lock", "compute_mode", "driver_mismatch", "driver_missing", "ecc_errors", "fabric_manager", "gpu_absent",
    "gpu_lost", "gpu_mix", "mig_mode", "nvlink_down", "nvml_missing", "page_retirement", "pcie_width",
    "persistence_mode", "power_limit", "row_remapping", "xid_errors",
)  # fmt: skip
