"""Is this GPU's power limit below its default?

Under large matmuls a GPU runs at its power limit, so a lower limit makes it slower. It may have been lowered on
purpose, to save power or to stay within a rack's supply: ask before raising it.

Source: NVML, power management limit, its default, and the enforced limit.
"""

from gputune.checks._answers import Finding, Measurements, below, each_gpu, not_applicable, not_read, ok, warning
from gputune.checks._questions import consumer_or_share
from gputune.checks._remedies import smi
from gputune.facts import Facts, Gpu

ASK = "a cap may be deliberate: ask whoever runs the machine first"
FIELDS = ("power_limit_watts", "power_enforced_limit_watts", "power_default_limit_watts")


@each_gpu()
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    limit, enforced, default = (getattr(gpu.health, field) for field in FIELDS)
    if below(limit, default):
        message = f"its power limit is {limit:g} W; the default is {default:g} W"
        return warning(message, smi(gpu, f"-pl {default:g}", note=ASK))
    if below(enforced, default) and "Laptop" in gpu.name:
        return not_applicable(f"a laptop limits it to {enforced:g} W, by its battery, its cooling or its firmware")
    if below(enforced, default):
        message = f"the board or the rack limits it to {enforced:g} W; the default is {default:g} W"
        return warning(message, "check the power cap in the server's management controller, and its power supplies")
    good = ok(f"its power limit is {limit or 0:g} W, not below its default")
    return not_read(facts, gpu, *FIELDS, lacking=consumer_or_share) or good
