"""May several processes use this GPU at once?

In an exclusive mode a second process (another rank, a notebook, a probe) is refused with "all CUDA-capable devices are
busy or unavailable"; in prohibited mode every process is.

Source: NVIDIA, nvidia-smi, compute mode.
"""

from gputune.checks._answers import each_gpu, error, not_seen, ok, smi, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements, share


def check(facts: Facts, measurements: Measurements) -> Findings:
    mps = facts.scheduler.gpu_sharing == "mps"
    return each_gpu(facts, lambda gpu: not_seen(facts, gpu) or _judge(gpu, mps), "compute_mode", lacking=share)


def _judge(gpu: Gpu, mps: bool) -> Finding:
    mode, remedy = gpu.health.compute_mode, smi(gpu, "-c DEFAULT")
    if mode == "prohibited":
        return error("its compute mode is prohibited: no program may use it", remedy)
    if mode == "exclusive process" and mps:
        return ok("its compute mode is exclusive process, as MPS requires")
    if mode != "default":
        return warning(f"its compute mode is {mode}: only one program at a time may use it", remedy)
    return ok("its compute mode is default")
