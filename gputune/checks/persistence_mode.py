"""Does the driver stay loaded when no program uses this GPU?

Without persistence the driver shuts the GPU down after the last program and sets it up for the next one, which costs every
start a second or more, and forgets power limits and clocks. The service nvidia-persistenced keeps it up. It is the host's
to set, not a container's.

Source: NVIDIA, Driver Persistence.
"""

from gputune.checks._answers import each_gpu, not_applicable, ok, smi, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, consumer, share


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, _of, "persistence_mode", lacking=share)


def _of(gpu: Gpu) -> Finding:
    if gpu.health.persistence_mode:
        return ok("persistence mode is on")
    if consumer(gpu):
        return not_applicable(f"off, as {gpu.name} of a desktop or laptop has it: its screen keeps the driver loaded")
    remedy = f"{smi(gpu, '-pm 1')}; for good: run nvidia-persistenced there, without --no-persistence-mode"
    return warning("persistence mode is off: every first program waits for the driver", remedy)
