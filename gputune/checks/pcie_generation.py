"""Does this GPU's PCIe link reach its full generation under load?

An idle link falls back to a lower generation to save power, so that only a load shows the real one. Each generation
doubles the bandwidth from host memory. If a link stays low, a firmware setting, a riser or a dirty contact limits it.

Source: nvmlDeviceGetCurrPcieLinkGeneration, sampled during a probe's measurements.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, conditions, each_gpu, ok, unmeasured, warning
from gputune.checks._questions import share


@each_gpu("pcie_generation_max", lacking=share)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    seen = conditions(facts, gpu, measurements, "pcie_generation")
    most = gpu.health.pcie_generation_max or 0
    if not seen:
        return unmeasured(facts, gpu, measurements)
    if max(seen) < most:
        remedy = "set the slot's PCIe speed to automatic in the firmware; power off, reseat the card and its riser"
        return warning(f"PCIe generation {max(seen)} of {most} under load", remedy)
    return ok(f"PCIe generation {max(seen)} under load")
