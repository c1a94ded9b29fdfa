"""Is this GPU's power limit below its default?

Under large matmuls a GPU runs at its power limit, so that a lower one is a slower GPU. Somebody may have set it to save
power, or to stay within what a rack can give: ask before raising it.

Source: NVML, power management limit, its default, and the enforced limit.
"""

from gputune.checks._answers import each_gpu, ok, smi, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, share


def check(facts: Facts, measurements: Measurements) -> Findings:
    fields = ("power_limit_watts", "power_enforced_limit_watts", "power_default_limit_watts")
    return each_gpu(facts, _of, *fields, lacking=share)


def _of(gpu: Gpu) -> Finding:
    limit, default = gpu.health.power_limit_watts or 0, gpu.health.power_default_limit_watts or 0
    enforced = gpu.health.power_enforced_limit_watts or 0
    if limit < default:
        return warning(f"its power limit is {limit:g} W, of {default:g} W by default", smi(gpu, f"-pl {default:g}"))
    if enforced < default:
        message = f"the board or the rack holds it to {enforced:g} W, of {default:g} W by default"
        return warning(message, "see the power cap of the server's management controller, and its power supplies")
    return ok(f"its power limit is {limit:g} W, not below its default")
