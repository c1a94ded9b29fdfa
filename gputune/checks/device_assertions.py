"""Are torch's device-side assertions on?

PYTORCH_USE_CUDA_DSA makes torch record which kernel failed an assertion, in builds made with TORCH_USE_CUDA_DSA: a help in
debugging that costs every launch. TORCH_USE_CUDA_DSA, which torch's error messages name, is an option of the build; as a
variable it does nothing.

Source: PyTorch, c10/cuda/CUDADeviceAssertionHost.
"""

from gputune.checks._answers import ok, warning
from gputune.checks._common import Facts, Findings, Measurements

VARIABLES = ("PYTORCH_USE_CUDA_DSA", "TORCH_USE_CUDA_DSA")


def check(facts: Facts, measurements: Measurements) -> Findings:
    left = {name: facts.environment[name] for name in VARIABLES if facts.environment.get(name, "0") not in ("0", "")}
    if left:
        told = ", ".join(f"{name}={value}" for name, value in left.items())
        yield warning(f"left from debugging: {told}", f"unset {' '.join(left)}", next(iter(left)))
    else:
        yield ok("device-side assertions are off")
