"""The fastest matmul that this device is capable of, and the shape that it needs.

`burst` is what a cool card does in its first moments: blocks of work between pauses, half a second of work in all.
`steady` is what it keeps up after seconds of load, where a power limit has lowered the clock. The theoretical peak is
taken at the clock under steady load, so that the share of it shows how good the kernels are and not how hot the card
is.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gputune.bench_process import Context
from gputune.benches._errors import one_line, synchronize
from gputune.benches._matmul import linear, matrix, operands, set_flags
from gputune.benches._peak_search import LARGEST, Shape, candidates, search
from gputune.benches._timing import Arm, Metric, Params, in_blocks, time_of
from gputune.facts.gap import Gap
from gputune.facts.gpu import Gpu
from gputune.measurement import LOOKS, Measurement

SECONDS = {"cuda": {"standard": 5.2, "thorough": 60}, "cpu": {"standard": 3, "thorough": 12}}
LEAST_SECONDS = {"cuda": 5.2}
RANK = 8

LONGEST_RUN_SECONDS = 0.007
SHORT_SECONDS = 0.004
"""The least that one look at a shape takes."""
BURST_BLOCK_SECONDS = 0.04
BURST_PAUSE_SECONDS = 0.12
STEADY_BLOCK_SECONDS = 0.1
COOLING_SECONDS = 0.5
"""A power limit acts on an average over the last moments."""
_metric = partial(Metric, "matmul_peak", "TFLOP/s")

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
"""Dense floating-point operations in a clock of one multiprocessor, a multiplication with its addition counted as two.
Sources: NVIDIA's architecture whitepapers and the CUDA programming guide's table of arithmetic throughput."""
_GEFORCE_HALF = ("7.5", "8.6", "8.9")
"""GeForce cards add up at half the rate where the sum is FP32, which is what torch asks for."""


def measure(context: Context) -> Iterator[Measurement | Gap]:
    dtypes = context.matmul_dtypes if context.budget == "thorough" else (context.main_dtype,)
    for dtype in dtypes:
        context.say(dtype)
        try:
            yield from _peaks(context, dtype, context.seconds / len(dtypes))
        except RuntimeError as error:
            synchronize(context)
            yield Gap(fact=f"bench.matmul_peak.{dtype}", reason=one_line(error))


def _peaks(context: Context, dtype: str, seconds: float) -> Iterator[Measurement]:
    bursts = LOOKS[0] * (BURST_BLOCK_SECONDS + BURST_PAUSE_SECONDS) if context.cuda else 0.0
    steady = LOOKS[0] * STEADY_BLOCK_SECONDS
    set_flags(dtype)
    products = _Products(context, dtype)
    shape = search(products.shapes(), products.rate, max(1.0, seconds - bursts - steady), products.allowed)
    arm = Arm(
        params={"dtype": dtype, "m": shape.m, "n": shape.n, "k": shape.k},
        run=products.run(shape),
        work=shape.flops / 1e12,
    )
    # Without a pause since the search, so that the card has been under load.
    steadily = in_blocks(context, arm, _metric("steady"), STEADY_BLOCK_SECONDS)
    yield steadily
    yield from theoretical(context, dtype, steadily)
    if context.cuda:
        time.sleep(COOLING_SECONDS)
        yield in_blocks(context, arm, _metric("burst"), BURST_BLOCK_SECONDS, BURST_PAUSE_SECONDS)


class _Products:
    """Matmuls of any shape up to the largest, on the same random numbers."""

    def __init__(self, context: Context, dtype: str) -> None:
        self._context, self._dtype = context, dtype
        first = 4096 if context.cuda else 512
        run = linear(dtype, *operands(context, dtype, first, first, first))
        time_of(context, run, 1)
        longest = LONGEST_RUN_SECONDS if context.cuda else 3 * LONGEST_RUN_SECONDS
        self._most_flops = 2 * first**3 / (time_of(context, run, 4) / 4) * longest
        self._side = largest_side(context.free_bytes()) if context.cuda else 4096
        self._left, self._right = (matrix(context, dtype, self._side, self._side, seed).view(-1) for seed in (0, 1))

    def shapes(self) -> list[Shape]:
        """Raises RuntimeError where too little memory is free for any."""
        gpu = self._context.facts.device_gpu(self._context.device)
        shapes = candidates(gpu.multiprocessor_count if gpu else None, self._most_flops, self._side)
        if not shapes:
            raise RuntimeError("too little memory is free for a matmul that fills the device")
        return shapes

    def allowed(self, shape: Shape) -> bool:
        return shape.flops <= self._most_flops and max(shape.m, shape.n, shape.k) <= self._side

    def run(self, shape: Shape) -> Callable[[], Any]:
        x = self._left[: shape.m * shape.k].view(shape.m, shape.k)
        w = self._right[: shape.n * shape.k].view(shape.n, shape.k)
        return linear(self._dtype, x, w)

    def rate(self, shape: Shape) -> float:
        """TFLOP/s over a few milliseconds; the run before loads the kernel."""
        run = self.run(shape)
        first = time_of(self._context, run, 1)
        repeats = max(1, round(SHORT_SECONDS / max(first, 1e-6)))
        return shape.flops * repeats / time_of(self._context, run, repeats) / 1e12


def largest_side(free_bytes: int) -> int:
    """The largest side for which two operands, which start as FP32, and their product fit half the free memory."""
    return min(LARGEST, int((free_bytes / 2 / 16) ** 0.5) // 512 * 512)


def theoretical(context: Context, dtype: str, steady: Measurement) -> Iterator[Measurement]:
    """The theoretical peak at the clock of the steady load; no row where the GPU or its clock is not known."""
    gpu = context.facts.device_gpu(context.device)
    clock = steady.conditions.get("sm_clock_mhz")
    rate = flops_per_clock(gpu, dtype) if gpu else None
    if gpu is None or gpu.multiprocessor_count is None or rate is None or not clock:
        return
    peak = gpu.multiprocessor_count * clock * 1e6 * rate / 1e12
    params: Params = {"dtype": dtype, "multiprocessors": gpu.multiprocessor_count, "flops_per_clock": rate}
    yield _metric("theoretical").row(context, [peak], params, sm_clock_mhz=clock)


def flops_per_clock(gpu: Gpu, dtype: str) -> int | None:
    """Operations of one multiprocessor in a clock; None for a GPU or dtype that the table does not hold."""
    capability = gpu.compute_capability or ""
    rate = _PER_CLOCK.get(capability, {}).get(dtype)
    halved = gpu.brand == "GeForce" and capability in _GEFORCE_HALF and dtype != "float32"
    return rate // 2 if rate and halved else rate
