"""Is TF32 requested on a GPU that does not have it?

TF32 came with compute capability 8.0. Older GPUs always compute in full float32, whatever flags and variables say:
nothing breaks, but the expected speed-up does not come. Their Tensor Cores, which most have from 7.0 on, are fast at
float16.

Source: NVIDIA, CUDA C++ Programming Guide, table of compute capabilities.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, not_applicable, ok, unread, warning
from gputune.checks.tf32_override import TORCH
from gputune.facts.environment import TF32_OVERRIDE
from gputune.facts.precision import tensor_core_dtypes


@each_gpu("compute_capability")
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    if "tf32" in tensor_core_dtypes(gpu.compute_capability, gpu.name):
        return ok(f"{gpu.name} has TF32")
    lacks = f"{gpu.name} ({gpu.compute_capability}) has no TF32"
    if variables := [name for name in (TF32_OVERRIDE, TORCH) if facts.environment.get(name) == "1"]:
        return warning(f"{lacks}, which {' and '.join(variables)} would turn on", f"unset {' '.join(variables)}")
    flags, defaults = facts.precision.flags, facts.precision.defaults
    if flags is None:
        return unread(facts, "libraries.flags", "torch's flags")
    if flags.matmul_tf32 and not (defaults and defaults.matmul_tf32):
        return warning(f"{lacks}, which torch's matmul flag requests", 'torch.set_float32_matmul_precision("highest")')
    return not_applicable(f"{lacks}, and nothing requests it")
