"""Forward passes of 3x3 convolutions by dtype, channel count and memory format.

Channel counts around multiples of 8 show what alignment is worth; 3 and 4 channels are a network's input, before and
after padding. What cuDNN's own search is worth, and what a backward pass takes, whole training steps show.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from gputune.bench_process import Context
from gputune.benches import kind_of
from gputune.benches._errors import or_shortage
from gputune.benches._fp32_errors import relative_error
from gputune.benches._matmul import set_flags
from gputune.benches._timing import Arm, Metric, Params, interleave, or_gap, shared_out
from gputune.facts.gap import Gap
from gputune.measurement import Measurement

SECONDS = {"cuda": {"standard": 4, "thorough": 28}, "cpu": {"standard": 5, "thorough": 16}}
RANK = 7

IMAGES = {"cuda": (64, 56), "cpu": (4, 28)}
"""Images in a batch, and pixels on a side, by kind of device."""
BLOCK_SECONDS = 0.03
"""Shorter than usual: calibration takes as long as two blocks, for each of many arms."""
ALIGNED = (8, 16, 32, 64, 96, 128, 256)
ODD = (7, 9, 15, 17, 31, 33, 63, 65)
COMMON = (64, 128, 256)
INPUTS = (3, 4)
KERNEL = 3
"""Pixels on a side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A convolution of stride 1, padded so that as many pixels come out as went in, and how it is computed."""

    dtype: str
    channels: int
    out: int
    channels_last: bool

    @property
    def params(self) -> Params:
        out: Params = {"out": self.out} if self.out != self.channels else {}
        return {
            "dtype": self.dtype,
            "kernel": f"{KERNEL}x{KERNEL}",
            "channels": self.channels,
            **out,
            "pass": "forward",
            "channels_last": self.channels_last,
        }

    def operations(self, images: int, pixels: int) -> float:
        return 2.0 * images * pixels**2 * self.out * self.channels * KERNEL**2


Group = list[Point]
"""Points that are measured in the same rounds."""


def groups(dtypes: Sequence[str], main: str, *, cuda: bool, thorough: bool) -> list[Group]:
    """All groups of a budget; `main` is the dtype that a network would be trained in."""
    if cuda:
        return list((_thorough_gpu if thorough else _standard_gpu)(dtypes, main))
    if not thorough:
        return [_formats(dtype, (32, 64, 63)) for dtype in dtypes]
    aligned = [_formats(dtype, (31, 32, 33, 63, 64, 65, 128)) for dtype in dtypes]
    return aligned + [_formats(dtype, INPUTS, out=32) for dtype in dtypes]


def _standard_gpu(dtypes: Sequence[str], main: str) -> Iterator[Group]:
    yield _formats(main, COMMON)
    padded = Point(dtype=main, channels=4, out=64, channels_last=True)
    yield [*_formats(main, (63, 65)), *_formats(main, (3,), out=64), padded]
    if "tf32" in dtypes:
        yield [point for dtype in ("tf32", "float32") for point in _formats(dtype, (128,))[1:]]


def _thorough_gpu(dtypes: Sequence[str], main: str) -> Iterator[Group]:
    yield _formats(main, ALIGNED)
    yield _formats(main, ODD)
    yield _formats(main, INPUTS, out=64)
    fp32 = [dtype for dtype in ("tf32", "float32") if dtype in dtypes and dtype != main]  # compared with each other
    for together in ([dtype for dtype in dtypes if dtype not in (main, "tf32", "float32")], fp32):
        for channels in (COMMON, (63, 65)) if together else ():
            yield [point for dtype in together for point in _formats(dtype, channels)]


def _formats(dtype: str, channels: Sequence[int], out: int | None = None) -> Group:
    return [
        Point(dtype=dtype, channels=count, out=out or count, channels_last=last)
        for count, last in product(channels, (False, True))
    ]


def baseline(point: Point, group: Group) -> Point | None:
    """The point that a point is decided against: the contiguous format, else TF32 for FP32."""
    others = [replace(point, channels_last=False)]
    others += [replace(point, dtype="tf32")] if point.dtype == "float32" else []
    return next((other for other in others if other != point and other in group), None)


def measure(context: Context) -> Iterator[Measurement | Gap]:
    if "tf32" in context.dtypes:
        yield _tf32_error(context)
    plan = groups(context.dtypes, context.main_dtype, cuda=context.cuda, thorough=context.budget == "thorough")
    for group, seconds in shared_out(plan, context.seconds, len):
        context.say(_title(group))
        yield from or_shortage(_measured(context, group, seconds), "bench.conv", f"{_title(group)}: ")


def _title(group: Group) -> str:
    channels = sorted({point.channels for point in group})
    return f"{' and '.join(dict.fromkeys(point.dtype for point in group))}, {channels[0]} to {channels[-1]} channels"


def _measured(context: Context, group: Group, seconds: float) -> Iterator[Measurement | Gap]:
    arms = {point: _arm(context, point) for point in group}
    for point, arm in arms.items():
        other = baseline(point, group)
        arm.baseline = arms[other] if other else None
    rows = interleave(context, list(arms.values()), seconds, Metric("conv", "TFLOP/s"), BLOCK_SECONDS)
    yield from or_gap(rows, "bench.conv", _title(group))


def _arm(context: Context, point: Point) -> Arm:
    import torch

    images, pixels = IMAGES[kind_of(context.device)]
    x, w = _tensors(context, point, images, pixels)
    if point.channels_last:
        x, w = (tensor.to(memory_format=torch.channels_last) for tensor in (x, w))
    return Arm(
        params=point.params,
        run=partial(torch.nn.functional.conv2d, x, w, padding=KERNEL // 2),
        work=point.operations(images, pixels) / 1e12,
        before=partial(set_flags, point.dtype),
    )


def _tensors(context: Context, point: Point, images: int, pixels: int) -> tuple[Any, Any]:
    import torch

    kind = getattr(torch, "float32" if point.dtype == "tf32" else point.dtype)
    generator = torch.Generator(device=context.device).manual_seed(0)
    randn = partial(torch.randn, device=context.device, generator=generator)
    x, w = randn(images, point.channels, pixels, pixels), randn(point.out, point.channels, KERNEL, KERNEL)
    return x.to(kind), (w / (point.channels * KERNEL**2) ** 0.5).to(kind)


def _tf32_error(context: Context) -> Measurement:
    """Relative error of a convolution against float64, which shows the precision that it really ran in."""
    from torch.nn.functional import conv2d

    x, w = _tensors(context, Point(dtype="tf32", channels=64, out=64, channels_last=False), 2, 28)
    set_flags("tf32")
    error = relative_error(conv2d(x, w, padding=1).double(), conv2d(x.double(), w.double(), padding=1))
    return Metric("conv", "1", "relative_error").row(context, [error], {"dtype": "tf32"})
