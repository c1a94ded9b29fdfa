"""How fast, and how exactly, this device multiplies matrices in each dtype, and what precision FP32 really runs in.

One square matmul in FP32, TF32, bfloat16, float16 and, where the hardware has it, float8, in turn, and the relative
error of each against float64. Only the error shows what precision really ran: NVIDIA_TF32_OVERRIDE beats torch's
flags in both directions and the flags do not show it. So matmul, convolution (both memory formats) and LSTM are
measured under the flags that this environment sets and under both settings of them.
"""

from collections.abc import Iterator
from functools import partial

from gputune.bench_process import Context
from gputune.benches._errors import one_line, synchronize
from gputune.benches._fp32_errors import errors, relative_error
from gputune.benches._matmul import linear, operands, set_flags
from gputune.benches._timing import Arm, Metric, interleave, or_gap, time_of, warm_up
from gputune.facts.gap import Gap
from gputune.knobs import _tf32
from gputune.measurement import Measurement
from gputune.search.rounds import against_first

SECONDS = {"cuda": {"quick": 1.9, "standard": 3.5, "thorough": 15}, "cpu": {"quick": 3, "standard": 4, "thorough": 10}}
RANK = 1

GPU_SIZE = 4096
CPU_SIZES = (256, 512, 1024)
CPU_CALL_SECONDS = 0.02
ERROR = Metric("precision", "1", "relative_error")


def measure(context: Context) -> Iterator[Measurement | Gap]:
    flags = context.facts.precision.flags  # that a program starts with here, which variables and start-up files may set
    if context.cuda and flags and flags.matmul_tf32 is not None and flags.cudnn_tf32 is not None:
        _tf32.set_matmul(flags.matmul_tf32)
        _tf32.set_cudnn(flags.cudnn_tf32)
    yield from _errors(context, "found")
    dtypes, missing = _dtypes(context)
    yield from missing
    for dtype in dtypes:
        yield _error(context, dtype)
    if context.cuda:
        for switched, allow in (("on", True), ("off", False)):
            _tf32.set_matmul(allow)
            _tf32.set_cudnn(allow)
            yield from _errors(context, switched)
    size = GPU_SIZE if context.cuda else _cpu_size(context)
    arms = against_first([_arm(context, dtype, size) for dtype in dtypes])
    if "tf32" in context.dtypes:  # which mixed precision must gain over
        for arm in arms[2:]:
            arm.baseline = arms[1]
    if context.cuda:
        warm_up(context, arms[2 if len(arms) > 2 else -1].run, min(1.0, context.seconds / 5))
    rows = interleave(context, arms, context.seconds * 0.6, Metric("precision", "TFLOP/s"))
    yield from or_gap(rows, "bench.precision", "a matmul of each dtype")


def _arm(context: Context, dtype: str, size: int) -> Arm:
    return Arm(
        params={"dtype": dtype, "size": size},
        run=linear(dtype, *operands(context, dtype, size, size, size)),
        work=2 * size**3 / 1e12,
        before=partial(set_flags, dtype),
    )


def _dtypes(context: Context) -> tuple[list[str], list[Gap]]:
    """The dtypes to measure, and Gaps. float8 is tried first: releases differ, and the device may refuse it."""
    dtypes = list(context.matmul_dtypes)
    if "float8" in dtypes:
        try:
            linear("float8", *operands(context, "float8", 64, 64, 64))().double()
        except (RuntimeError, AttributeError, TypeError) as error:
            synchronize(context)
            dtypes.remove("float8")
            return dtypes, [Gap(fact="bench.precision", reason=f"float8: {one_line(error)}")]
    return dtypes, []


def _cpu_size(context: Context) -> int:
    chosen = CPU_SIZES[0]
    for size in CPU_SIZES:
        run = linear("float32", *operands(context, "float32", size, size, size))
        time_of(context, run, 1)
        if time_of(context, run, 2) / 2 > CPU_CALL_SECONDS:
            break
        chosen = size
    return chosen


def _error(context: Context, dtype: str) -> Measurement:
    k = 4096 if context.cuda else 1024
    x, w = operands(context, "float32", 512, 512, k)
    exact = x.double() @ w.double().T
    set_flags(dtype)
    got = linear(dtype, *operands(context, dtype, 512, 512, k))().double()
    return ERROR.row(context, [relative_error(got, exact)], {"dtype": dtype})


def _errors(context: Context, flags: str) -> Iterator[Measurement]:
    for operation, error in errors(context.device).items():
        yield ERROR.row(context, [error], {"operation": operation, "flags": flags})
