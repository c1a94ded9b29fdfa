"""Does this GPU use all the PCIe lanes that card and slot support?

Half the lanes give half the bandwidth from host memory, and to other GPUs without NVLink. Reseat the card and its
riser; look up in the board's manual which slots share lanes, and set their bifurcation in the firmware. Some GPUs,
mostly in laptops, use fewer lanes when idle: check whether it stays so under load (`nvidia-smi -q` beside a program).

Source: nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, not_applicable, ok, warning
from gputune.checks._questions import share


@each_gpu("pcie_width", "pcie_width_max", lacking=share)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    width, most = gpu.health.pcie_width or 0, gpu.health.pcie_width_max or 0
    if width < most and "Laptop" in gpu.name:
        return not_applicable(f"{width} PCIe lanes of {most}: an idle laptop GPU uses fewer")
    if width < most:
        message = f"{width} PCIe lanes of {most} are in use"
        return warning(message, "power off, reseat card and riser; check the slot's bifurcation in the firmware")
    return ok(f"all {width} PCIe lanes are in use")
