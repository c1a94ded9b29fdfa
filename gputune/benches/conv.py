"""3x3 convolutions by dtype, channel count and memory format, and with and without cuDNN's own search.

Forward only. Channel counts around multiples of 8 show what alignment and channels_last are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from gputune.benches import Context, torch_missing
from gputune.benches._matmul import flags_for
from gputune.benches._timing import Arm, interleave, measurement
from gputune.facts import Facts
from gputune.measurement import Measurement, rounded

SECONDS = {
    "cuda": {"quick": 0, "standard": 16, "thorough": 45},
    "cpu": {"quick": 0, "standard": 9, "thorough": 30},
}
RANK = 3


@dataclass(frozen=True)
class Shape:
    batch: int
    pixels: int
    aligned: tuple[int, ...]
    odd: tuple[int, ...]


SHAPES = {
    "cuda": Shape(batch=64, pixels=56, aligned=(64, 128, 256), odd=(60, 63, 65)),
    "cpu": Shape(batch=4, pixels=28, aligned=(32, 64), odd=(63,)),
}


def needs(facts: Facts, device: str) -> str | None:
    return torch_missing(facts)


def measure(context: Context) -> Iterator[Measurement]:
    shape = SHAPES["cuda" if context.cuda else "cpu"]
    for dtype in context.dtypes:
        if dtype in ("float32", "tf32"):
            yield _error(context, dtype)
    groups = [_formats(context, shape, dtypes) for dtypes in _groups(context)]
    row = partial(measurement, context, "conv", "TFLOP/s")
    seconds = context.seconds / (len(groups) + context.cuda)
    for group in groups:
        yield from interleave(context, group(), seconds, row)
    if context.cuda:
        with ExitStack() as threads:
            yield from interleave(context, _searched(context, shape, threads), seconds, row)


def _groups(context: Context) -> list[tuple[str, ...]]:
    """Dtypes that are compared with each other are measured in turn: full FP32 beside TF32."""
    apart = [(dtype,) for dtype in context.dtypes if dtype not in ("float32", "tf32")]
    together = tuple(dtype for dtype in ("tf32", "float32") if dtype in context.dtypes)
    return [*apart, together]


def _formats(context: Context, shape: Shape, dtypes: tuple[str, ...]) -> Callable[[], list[Arm]]:
    def arms() -> list[Arm]:
        context.say(" and ".join(dtypes))
        found = []
        for dtype in dtypes:
            for channels in _channels(context, shape, dtype):
                first, last = (_arm(context, shape, dtype, channels, channels_last=last) for last in (False, True))
                last.baseline = first
                found += [first, last]
        return found

    return arms


def _channels(context: Context, shape: Shape, dtype: str) -> tuple[int, ...]:
    """All counts for the dtypes that networks are trained in; two for what only serves comparison."""
    better = {"float16": "bfloat16", "float32": "tf32"}.get(dtype)
    return shape.aligned[:2] if better in context.dtypes else (*shape.aligned, *shape.odd)


def _main_dtype(context: Context) -> str:
    """What a network would be trained in."""
    return next(dtype for dtype in ("bfloat16", "float16", "float32") if dtype in context.dtypes)


def _searched(context: Context, shape: Shape, threads: ExitStack) -> list[Arm]:
    """The same convolutions with cudnn.benchmark on and off.

    torch keeps the plan of a shape in a cache that does not know the flag, but is the calling thread's own: a thread
    for each arm makes each keep its own plans.
    """
    context.say("cudnn.benchmark")
    import torch

    arms: list[Arm] = []
    for channels in shape.aligned:
        for on in (False, True):
            arm = _arm(context, shape, _main_dtype(context), channels, channels_last=True)
            del arm.params["aligned"]
            arm.params["cudnn_benchmark"] = on
            arm.baseline = arms[-1] if on else None
            # torch's current device, too, is the thread's own.
            pool = ThreadPoolExecutor(1, initializer=torch.cuda.set_device, initargs=(context.device,))
            arms.append(_on_thread(threads.enter_context(pool), arm, on))
    return arms


def _on_thread(pool: ThreadPoolExecutor, arm: Arm, benchmark: bool) -> Arm:
    import torch

    set_flags = arm.before

    def before() -> None:
        set_flags()
        torch.backends.cudnn.benchmark = benchmark

    arm.before, arm.within = before, lambda block: pool.submit(block).result()
    return arm


def _tensors(context: Context, shape: Shape, channels: int, dtype: str) -> tuple[Any, Any]:
    import torch

    kind = getattr(torch, "float32" if dtype == "tf32" else dtype)
    generator = torch.Generator(device=context.device).manual_seed(0)
    x = torch.randn(shape.batch, channels, shape.pixels, shape.pixels, device=context.device, generator=generator)
    w = torch.randn(channels, channels, 3, 3, device=context.device, generator=generator) / (3 * channels**0.5)
    return x.to(kind), w.to(kind)


def _arm(context: Context, shape: Shape, dtype: str, channels: int, *, channels_last: bool) -> Arm:
    import torch

    x, w = _tensors(context, shape, channels, dtype)
    if channels_last:
        x, w = (tensor.to(memory_format=torch.channels_last) for tensor in (x, w))
    return Arm(
        params={
            "dtype": dtype,
            "channels": channels,
            "channels_last": channels_last,
            "aligned": channels in shape.aligned,
        },
        run=lambda: torch.nn.functional.conv2d(x, w, padding=1),
        work=2 * shape.batch * shape.pixels**2 * channels**2 * 9 / 1e12,
        before=flags_for(dtype),
    )


def _error(context: Context, dtype: str) -> Measurement:
    """Relative error of a convolution against float64: what precision it really ran in."""
    import torch

    x, w = _tensors(context, Shape(batch=2, pixels=28, aligned=(), odd=()), 64, dtype)
    exact = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    flags_for(dtype)()
    got = torch.nn.functional.conv2d(x, w, padding=1).double()
    error = float((got - exact).norm() / exact.norm())
    return Measurement(
        bench="conv",
        metric="relative_error",
        unit="1",
        samples=(rounded(error),),
        params={"dtype": dtype},
        device=context.device,
    )
