"""Does another process use this GPU?

Another process takes memory and time, and makes measurements worthless. What counts is compute processes, and memory in
use beyond 1 GiB (the driver's own reserve is less: 0.6 GiB on an H200). In a container other processes may be
invisible, but the memory that they use is not. A desktop's graphics processes (Xorg, gnome-shell, a browser) are no
other user, nor is what they use; on a card that drives a display up to 4 GiB are theirs, even if they are not visible.

Source: nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetDisplayActive,
nvmlDeviceGetMemoryInfo; fuser(1).
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, counted, each_gpu, gib, ok, unread, warning
from gputune.checks._questions import share
from gputune.checks._remedies import on_host

MOMENTARY = True
RESERVE_BYTES = 1 << 30
DESKTOP_BYTES = 4 << 30
DESKTOP_CARDS = ("GeForce", "Titan", "Quadro", "Quadro RTX", "RTX", "NVS")
LOOK = on_host(
    "sudo fuser -v /dev/nvidia*",
    note="names the processes; wait for them, or choose a free GPU of yours with CUDA_VISIBLE_DEVICES",
)


@each_gpu("processes", lacking=share, used_by_torch=True)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    used, processes = gpu.memory_used_bytes, gpu.health.processes
    if processes:
        memory = "" if used is None else f"; {gib(used)} of its memory is in use"
        return warning(f"{counted(processes, 'process')} on it{memory}", LOOK)
    if used is None:
        return unread(facts, f"gpu.{gpu.index}.memory", "the memory in use")
    drawing = gpu.health.graphics_processes
    is_desktop = (drawing or gpu.health.display_active) and gpu.brand in DESKTOP_CARDS
    without_user = DESKTOP_BYTES if is_desktop else RESERVE_BYTES
    if used - (gpu.health.graphics_memory_bytes or 0) > without_user:
        return warning(f"{gib(used)} of its memory is in use, though no compute process is visible from here", LOOK)
    return ok("no other process uses it" + (f" but {counted(drawing, 'graphics process')}" if drawing else ""))
