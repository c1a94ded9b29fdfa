"""Are as many of this GPU's NVLinks up as of the other GPUs'?

A link that is down costs its share of the bandwidth between GPUs, and every collective waits for the slowest. Reset all
GPUs of the machine together (with Fabric Manager stopped where there is one), or reboot; a link that stays down is a fault
of the card, its bridge or its baseboard.

Source: NVIDIA, NVLink; nvmlDeviceGetNvLinkState.
"""

from gputune.checks._answers import each_gpu, error, not_applicable, ok, unknown, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, cause

RESET = "on the host: nvidia-smi nvlink -s; then sudo nvidia-smi --gpu-reset (all GPUs together), or reboot it"


def check(facts: Facts, measurements: Measurements) -> Findings:
    def alike(gpu: Gpu) -> list[Gpu]:
        return [other for other in facts.gpus if other.name == gpu.name]

    def lacking(gpu: Gpu) -> str | None:
        if len(facts.gpus) == 1:
            return "a GPU alone has none to be linked to"
        every = all(cause(facts, f"gpu.{other.index}.nvlinks_up") == "not_supported" for other in alike(gpu))
        return f"no {gpu.name} here has NVLink" if every else None

    return each_gpu(facts, lambda gpu: _of(gpu, alike(gpu)), "nvlinks_up", lacking=lacking)


def _of(gpu: Gpu, alike: list[Gpu]) -> Finding:
    links = gpu.health.nvlinks_up or ()
    up, most = sum(links), max(sum(other.health.nvlinks_up or ()) for other in alike)
    down = ", ".join(str(link) for link, state in enumerate(links) if not state)
    switched = gpu.health.fabric_state == "completed" or any(other.health.nvswitch for other in alike)
    if gpu.health.mig:
        return not_applicable("MIG is on, which does without NVLink")
    if up < most and not down:
        return unknown(f"NVML tells of {len(links)} NVLinks, of others' {most}")
    if up < most and (switched or up):  # without a switch, a GPU that has none is not bridged to another
        return error(f"{up} NVLinks are up, of others {most} (down: {down})", RESET)
    if switched and down:
        return warning(f"{up} of {len(links)} NVLinks are up, as of the others (down: {down})", RESET)
    return ok(f"{up} NVLinks are up, and of no other GPU more" if up else "its NVLinks are not connected")
