"""Does every kernel launch wait until the kernel has finished?

CUDA_LAUNCH_BLOCKING=1 makes an error appear at the line that caused it, for debugging. It also prevents host and GPU
from working at the same time, so that steps made of small kernels become several times slower.

Source: CUDA C++ Programming Guide, CUDA Environment Variables.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unset
from gputune.checks._questions import on

VARIABLE = "CUDA_LAUNCH_BLOCKING"


def check(facts: Facts, measurements: Measurements) -> Findings:
    if on(facts, VARIABLE):
        yield unset(f"{VARIABLE}={facts.environment[VARIABLE]}: the host waits for every kernel to finish", VARIABLE)
    else:
        yield ok(f"{VARIABLE} is off")
