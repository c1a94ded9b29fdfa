"""May several processes use this GPU at once?

In an exclusive mode a second process (another rank, a notebook, a probe) is refused with "all CUDA-capable devices are
busy or unavailable"; in prohibited mode every process is.

Source: NVIDIA, nvidia-smi, compute mode.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, error, ok, warning
from gputune.checks._questions import share
from gputune.checks._remedies import smi


@each_gpu("compute_mode", lacking=share, used_by_torch=True)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    mode = gpu.health.compute_mode
    remedy = smi(gpu, "-c DEFAULT", note="an exclusive mode may be deliberate, as for MPS")
    if mode == "prohibited":
        return error("its compute mode is prohibited: no program may use it", remedy)
    if mode == "exclusive process" and facts.scheduler.gpu_sharing == "mps":
        return ok("its compute mode is exclusive process, as MPS requires")
    if mode != "default":
        return warning(f"its compute mode is {mode}: only one program at a time may use it", remedy)
    return ok("its compute mode is default")
