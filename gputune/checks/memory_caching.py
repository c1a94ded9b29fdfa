"""Is torch's caching of GPU memory switched off?

PYTORCH_NO_CUDA_MEMORY_CACHING=1 makes every tensor call cudaMalloc and cudaFree, so that compute-sanitizer sees them.
Each call waits for the GPU, and training becomes many times slower.

Source: PyTorch, CUDA notes, Memory management.
"""

from gputune.checks._answers import Facts, Findings, Measurements, ok, unknown, unset
from gputune.checks._questions import number

VARIABLE = "PYTORCH_NO_CUDA_MEMORY_CACHING"
READS_VALUES = (2, 8)
"""From this torch on, at the latest, only 1 turns caching off; in 2.4 any value does, even 0 or the empty one."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    value, torch = facts.environment.get(VARIABLE), number(facts.libraries.torch)
    if value == "1" or (value is not None and torch is not None and torch < READS_VALUES):
        yield unset(f"{VARIABLE}={value}: every tensor is allocated and freed by CUDA, which is slow", VARIABLE)
    elif value is not None and torch is None:
        yield unknown(f"{VARIABLE}={value}; its effect depends on torch's version, which is unknown")
    else:
        ignored = f" ({VARIABLE}={value} is not 1)" if value is not None else ""
        yield ok(f"torch keeps freed GPU memory for the next tensor{ignored}")
