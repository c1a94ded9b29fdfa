"""Does the driver stay loaded when no program uses this GPU?

Without persistence the driver shuts the GPU down after the last program and initialises it again for the next one,
which delays every start by a second or more and loses power limits and clocks. The service nvidia-persistenced prevents
this. It has to run on the host, not in a container.

Source: NVIDIA, Driver Persistence.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, not_applicable, ok, warning
from gputune.checks._questions import consumer, share
from gputune.checks._remedies import smi


@each_gpu("persistence_mode", lacking=share)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    if gpu.health.persistence_mode:
        return ok("persistence mode is on")
    if consumer(gpu) or gpu.health.display_active or gpu.health.graphics_processes:
        return not_applicable(f"off, as usual in a desktop or laptop ({gpu.name}): its screen keeps the driver loaded")
    note = "until it reboots; permanently: run nvidia-persistenced there, without --no-persistence-mode"
    message = "persistence mode is off: a program that finds the GPU idle waits for the driver to load"
    return warning(message, smi(gpu, "-pm 1", note=note))
