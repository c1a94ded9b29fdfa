"""Does this GPU multiply bfloat16 natively?

Below compute capability 8.0 (V100, T4, RTX 20) torch accepts bfloat16 and `torch.cuda.is_bf16_supported()` answers True,
but the arithmetic is emulated and slow. Such a GPU's Tensor Cores (7.0 on) take float16, whose small gradients need a
GradScaler; older ones have none, and float32 is best there.

Source: NVIDIA, CUDA C++ Programming Guide, table of compute capabilities; torch.cuda.is_bf16_supported.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import no_gpu, unread
from gputune.facts import Facts, Gpu
from gputune.facts.precision import tensor_core_dtypes
from gputune.measurement import Measurement

CHECK = "bf16_emulated"
USE_FLOAT16 = 'use torch.autocast("cuda", dtype=torch.float16) with torch.amp.GradScaler("cuda")'
USE_FLOAT32 = "leave torch.autocast off: use float32"


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    if not facts.gpus:
        yield no_gpu(facts, CHECK)
    for gpu in facts.gpus:
        yield _of(facts, gpu)


def _of(facts: Facts, gpu: Gpu) -> Finding:
    subject = f"GPU {gpu.index}"
    if gpu.compute_capability is None:
        return unread(facts, CHECK, f"gpu.{gpu.index}.compute_capability", f"{subject}'s compute capability")
    dtypes = tensor_core_dtypes(gpu.compute_capability)
    if "bfloat16" in dtypes:
        return Finding(check=CHECK, severity="OK", message=f"{gpu.name} multiplies bfloat16 natively", subject=subject)
    return Finding(
        check=CHECK,
        severity="WARNING",
        message=f"{gpu.name} ({gpu.compute_capability}) only emulates bfloat16, slowly, though torch accepts it",
        remedy=USE_FLOAT16 if "float16" in dtypes else USE_FLOAT32,
        subject=subject,
    )
