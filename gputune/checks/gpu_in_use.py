"""Does another process use this GPU?

Another process takes memory and time, and makes measurements worthless. What counts is compute processes, and memory in
use beyond 1 GiB (the driver's own reserve is less: 0.6 GiB on an H200). In a container other processes may be
invisible, but the memory that they use is not.

Source: nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetMemoryInfo.
"""

from gputune.checks._answers import Finding, Measurements, counted, each_gpu, gib, not_seen, ok, unread, warning
from gputune.checks._questions import share
from gputune.facts import Facts, Gpu

MOMENTARY = True
RESERVE_BYTES = 1 << 30
LOOK = "nvidia-smi on the host lists the processes; choose another GPU with CUDA_VISIBLE_DEVICES, or wait"


@each_gpu("processes", lacking=share)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    used, processes = gpu.memory_used_bytes, gpu.health.processes
    if others := not_seen(facts, gpu):
        return others
    if processes:
        memory = "" if used is None else f"; {gib(used)} of its memory is in use"
        return warning(f"{counted(processes, 'process')} on it{memory}", LOOK)
    if used is None:
        return unread(facts, f"gpu.{gpu.index}.memory", "the memory in use")
    if used > RESERVE_BYTES:
        return warning(f"{gib(used)} of its memory is in use, though no compute process is visible from here", LOOK)
    return ok("no other process uses it")
