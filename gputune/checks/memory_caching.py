"""Is torch's caching of GPU memory switched off?

PYTORCH_NO_CUDA_MEMORY_CACHING=1 makes every tensor a cudaMalloc and a cudaFree, each of which waits for the GPU, so that
compute-sanitizer sees them. Training becomes many times slower.

Source: PyTorch, CUDA notes, Memory management.
"""

from gputune.checks._answers import ok, unknown, warning
from gputune.checks._common import Facts, Findings, Measurements, number

VARIABLE = "PYTORCH_NO_CUDA_MEMORY_CACHING"
READS_VALUES = (2, 8)
"""Since this torch at the latest only 1 counts; 2.4 took any value, even 0 and nothing at all."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    value, torch = facts.environment.get(VARIABLE), number(facts.libraries.torch)
    if value == "1" or (value is not None and torch is not None and torch < READS_VALUES):
        yield warning(f"{VARIABLE}={value}: every tensor allocates by itself", f"unset {VARIABLE}", VARIABLE)
    elif value is not None and torch is None:
        yield unknown(f"{VARIABLE}={value}; what it does depends on torch's version, which is not known")
    else:
        ignored = f" ({VARIABLE}={value} is not 1)" if value is not None else ""
        yield ok(f"torch keeps freed GPU memory for the next tensor{ignored}")
