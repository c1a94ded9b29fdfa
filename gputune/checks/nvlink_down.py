"""Does this GPU have as many active NVLinks as the other GPUs?

A link that is down reduces the bandwidth between GPUs, and every collective operation waits for the slowest GPU. Reset
all GPUs of the machine together (stop Fabric Manager first if it runs), or reboot; if a link stays down, the card, its
bridge or its baseboard is faulty.

Source: NVIDIA, NVLink; nvmlDeviceGetNvLinkState.
"""

from gputune.checks import Finding
from gputune.checks._answers import Findings, Measurements, error, judge_gpus, not_applicable, ok, unknown, warning
from gputune.checks._questions import cause
from gputune.checks._remedies import reset_all
from gputune.facts import Facts, Gpu

RESET = reset_all(note="or reboot it; if the link stays down (nvidia-smi nvlink -s), have card and bridge looked at")


def check(facts: Facts, measurements: Measurements) -> Findings:
    def alike(gpu: Gpu) -> list[Gpu]:
        return [other for other in facts.gpus if other.name == gpu.name]

    def lacking(gpu: Gpu) -> str | None:
        if len(facts.gpus) == 1:
            return "there is no other GPU to be linked to"
        every = all(cause(facts, f"gpu.{other.index}.nvlinks_up") == "not_supported" for other in alike(gpu))
        return f"no {gpu.name} here has NVLink" if every else None

    return judge_gpus(facts, lambda gpu: _judge(gpu, alike(gpu)), "nvlinks_up", lacking=lacking)


def _judge(gpu: Gpu, alike: list[Gpu]) -> Finding:
    links = gpu.health.nvlinks_up or ()
    up, most = sum(links), max(sum(other.health.nvlinks_up or ()) for other in alike)
    down = ", ".join(str(link) for link, state in enumerate(links) if not state)
    switched = gpu.health.fabric_state == "completed" or any(other.health.nvswitch for other in alike)
    if gpu.health.mig:
        return not_applicable("MIG is on, and MIG slices do not use NVLink")
    if up < most and not down:
        return unknown(f"NVML describes {len(links)} of its NVLinks, and {most} of other GPUs")
    if up < most and (switched or up):  # without a switch, a GPU with no link up is simply not bridged to another
        return error(f"{up} NVLinks are up, {most} on other GPUs (down: {down})", RESET)
    if switched and down:
        others = ", as on the other GPUs" if len(alike) > 1 else ""
        return warning(f"{up} of {len(links)} NVLinks are up{others} (down: {down})", RESET)
    return ok(f"{up} NVLinks are up, and no other GPU has more" if up else "its NVLinks are not connected")
