"""Is TF32 asked for on a GPU that does not have it?

TF32 came with compute capability 8.0. Older GPUs compute float32 as ever, whatever the flags and variables say: nothing is
gained, and nothing is wrong either, except for who counts on it. float16 is what their Tensor Cores (7.0 on) are fast at.

Source: NVIDIA, CUDA C++ Programming Guide, table of compute capabilities.
"""

from gputune.checks._answers import each_capability, not_applicable, ok, unread, warning
from gputune.checks._common import Facts, Finding, Findings, Gpu, Measurements
from gputune.checks.tf32_override import TORCH
from gputune.facts.environment import TF32_OVERRIDE
from gputune.facts.precision import tensor_core_dtypes


def check(facts: Facts, measurements: Measurements) -> Findings:
    return each_capability(facts, lambda gpu: _of(facts, gpu))


def _of(facts: Facts, gpu: Gpu) -> Finding:
    if "tf32" in tensor_core_dtypes(gpu.compute_capability):
        return ok(f"{gpu.name} has TF32")
    lacks = f"{gpu.name} ({gpu.compute_capability}) has no TF32"
    if asked := [name for name in (TF32_OVERRIDE, TORCH) if facts.environment.get(name) == "1"]:
        return warning(f"{lacks}, which {' and '.join(asked)} would turn on", f"unset {' '.join(asked)}")
    flags, defaults = facts.precision.flags, facts.precision.defaults
    if flags is None:
        return unread(facts, "libraries.flags", "torch's flags")
    if flags.matmul_tf32 and not (defaults and defaults.matmul_tf32):
        return warning(f"{lacks}, which torch's matmul flag asks for", 'torch.set_float32_matmul_precision("highest")')
    return not_applicable(f"{lacks}, and nobody asks for it")
