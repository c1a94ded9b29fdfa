"""Is this GPU divided into MIG slices?

With MIG on, programs use slices, each with a part of the multiprocessors and of the memory, and torch sees one slice
per process. A profile measured in a slice holds only for slices of that size, and a profile of the whole GPU holds for
no slice: probe in the kind of slice that the job gets.

Source: NVIDIA, Multi-Instance GPU User Guide.
"""

from gputune.checks._answers import each_gpu, fully_read, ok, smi, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, consumer_or_share

WITH_MIG = ("8.0", "9.0", "10.0", "10.3", "11.0", "12.0")
WORKSTATION_WITH_MIG = ("RTX PRO 4500", "RTX PRO 5000", "RTX PRO 6000")


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_gpu(facts, lambda gpu: _judge(facts, gpu), "mig", lacking=_lacking)


def _judge(facts: Facts, gpu: Gpu) -> Finding:
    mig, pending = gpu.health.mig, gpu.health.mig_pending
    if pending is not None and mig != pending:
        message = f"MIG is {'on' if mig else 'off'}, and will be {'on' if pending else 'off'} after a reset"
        return warning(message, f"when nothing runs on it, {smi(gpu, '--gpu-reset')}")
    if mig:
        remedy = (
            "CUDA_VISIBLE_DEVICES=MIG-UUID gputune probe, in the slice that the job gets (nvidia-smi -L lists them); "
            f"for the whole GPU, {smi(gpu, '-mig 0')}"
        )
        return warning(
            "MIG is on: torch gets a slice of the GPU, and a profile holds for slices of one size only", remedy
        )
    return fully_read(facts, gpu, ok("MIG is off"), "mig_pending")


def _lacking(gpu: Gpu) -> str | None:
    small = gpu.compute_capability == "12.0" and not any(name in gpu.name for name in WORKSTATION_WITH_MIG)
    if small or (gpu.compute_capability and gpu.compute_capability not in WITH_MIG):
        return f"{gpu.name} ({gpu.compute_capability}) has no MIG"
    return consumer_or_share(gpu)
