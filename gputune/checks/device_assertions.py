"""Are torch's device-side assertions on?

PYTORCH_USE_CUDA_DSA makes torch record which kernel failed an assertion, in builds made with TORCH_USE_CUDA_DSA. It
helps in debugging and slows down every launch. TORCH_USE_CUDA_DSA, which torch's error messages name, is a build
option; as an environment variable it has no effect.

Source: PyTorch, c10/cuda/CUDADeviceAssertionHost.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unset

VARIABLES = ("PYTORCH_USE_CUDA_DSA", "TORCH_USE_CUDA_DSA")


def check(facts: Facts, measurements: Measurements) -> Findings:
    left = {name: facts.environment[name] for name in VARIABLES if facts.environment.get(name, "0") not in ("0", "")}
    if left:
        settings = ", ".join(f"{name}={value}" for name, value in left.items())
        yield unset(f"left over from debugging: {settings}", *left)
    else:
        yield ok("device-side assertions are off")
