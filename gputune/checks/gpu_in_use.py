"""Does something else use this GPU?

Another process takes memory and time, and makes measurements worthless. Counted are compute processes, and memory in use
beyond 1 GiB (a driver's own reserve, 0.6 GiB on an H200, is none). In a container the processes of others may not be
visible, but their memory is.

Source: nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetMemoryInfo.
"""

from gputune.checks._answers import counted, each_gpu, gib, not_seen, ok, unread, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, share

MOMENTARY = True
RESERVE_BYTES = 1 << 30
LOOK = "nvidia-smi names them, on the host; choose another GPU with CUDA_VISIBLE_DEVICES, or wait"


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, lambda gpu: _of(facts, gpu), "processes", lacking=share)


def _of(facts: Facts, gpu: Gpu) -> Finding:
    used, processes = gpu.memory_used_bytes, gpu.health.processes
    if others := not_seen(facts, gpu):
        return others
    if processes:
        memory = "" if used is None else f"; {gib(used)} of its memory is in use"
        return warning(f"{counted(processes, 'process')} on it{memory}", LOOK)
    if used is None:
        return unread(facts, f"gpu.{gpu.index}.memory", "the memory in use")
    if used > RESERVE_BYTES:
        return warning(f"{gib(used)} of its memory is in use, though no compute process is seen from here", LOOK)
    return ok("nothing else uses it")
