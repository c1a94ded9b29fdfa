"""A GPU's theoretical peak: multiprocessors times clock times the operations of one multiprocessor in a clock."""

from gputune.facts.gpu import Gpu

# Dense floating-point operations in a clock of one multiprocessor, a multiplication with its addition counted as two.
# Sources: NVIDIA's architecture whitepapers and the CUDA programming guide's table of arithmetic throughput.
_PER_CLOCK: dict[str, dict[str, int]] = {
    "7.0": {"float32": 128, "float16": 1024},
    "7.5": {"float32": 128, "float16": 1024},
    "8.0": {"float32": 128, "tf32": 1024, "bfloat16": 2048, "float16": 2048},
    "8.6": {"float32": 256, "tf32": 512, "bfloat16": 1024, "float16": 1024},
    "8.9": {"float32": 256, "tf32": 512, "bfloat16": 1024, "float16": 1024, "float8": 2048},
    "9.0": {"float32": 256, "tf32": 2048, "bfloat16": 4096, "float16": 4096, "float8": 8192},
    "10.0": {"float32": 256, "tf32": 4096, "bfloat16": 8192, "float16": 8192, "float8": 16384},
    "10.3": {"float32": 256, "tf32": 4096, "bfloat16": 8192, "float16": 8192, "float8": 16384},
}
# GeForce cards add up at half the rate where the sum is FP32, which is what torch asks for.
_GEFORCE_HALF = ("7.5", "8.6", "8.9")


def flops_per_clock(gpu: Gpu, dtype: str) -> int | None:
    """Operations of one multiprocessor in a clock; None for a GPU or dtype that the table does not hold."""
    capability = gpu.compute_capability or ""
    rate = _PER_CLOCK.get(capability, {}).get(dtype)
    halved = gpu.brand == "GeForce" and capability in _GEFORCE_HALF and dtype != "float32"
    return rate // 2 if rate and halved else rate


def peak_tflops(gpu: Gpu, dtype: str, clock_mhz: float) -> float | None:
    """TFLOP/s at this clock of the multiprocessors; None for a GPU or dtype that the table does not hold."""
    rate = flops_per_clock(gpu, dtype)
    if rate is None or gpu.multiprocessor_count is None:
        return None
    return gpu.multiprocessor_count * clock_mhz * 1e6 * rate / 1e12
