"""Does this GPU multiply bfloat16 natively?

Below compute capability 8.0 (V100, T4, RTX 20) torch accepts bfloat16 and `torch.cuda.is_bf16_supported()` returns
True, but the arithmetic is emulated and slow. The Tensor Cores of 7.0 and 7.5 multiply float16, whose small gradients
need a GradScaler. Older GPUs have no Tensor Cores, nor have GTX 16 and their kin although they are of 7.5: float32 is
best there.

Source: NVIDIA, CUDA C++ Programming Guide, table of compute capabilities; torch.cuda.is_bf16_supported.
"""

from gputune.checks._answers import Facts, Finding, Gpu, Measurements, each_gpu, ok, warning
from gputune.checks._remedies import typed
from gputune.facts.precision import tensor_core_dtypes

USE_FLOAT16 = typed('torch.autocast("cuda", dtype=torch.float16)', note='with torch.amp.GradScaler("cuda")')
USE_FLOAT32 = "leave torch.autocast off: use float32"
ACCELERATE = "ACCELERATE_MIXED_PRECISION"


@each_gpu("compute_capability", used_by_torch=True)
def check(facts: Facts, gpu: Gpu, measurements: Measurements) -> Finding:
    dtypes = tensor_core_dtypes(gpu.compute_capability, gpu.name)
    if "bfloat16" in dtypes:
        return ok(f"{gpu.name} multiplies bfloat16 natively")
    half, asked = "float16" in dtypes, facts.environment.get(ACCELERATE) == "bf16"
    requested = f", and {ACCELERATE} requests it" if asked else ""
    message = f"{gpu.name} ({gpu.compute_capability}) emulates bfloat16, slowly, though torch accepts it{requested}"
    if asked:
        return warning(message, typed(f"export {ACCELERATE}={'fp16' if half else 'no'}"))
    return warning(message, USE_FLOAT16 if half else USE_FLOAT32)
