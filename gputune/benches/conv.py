"""Convolutions by dtype, channel count and memory format, and with and without cuDNN's own search.

3x3 forward in the standard budget; in the thorough one also 1x1 and depthwise, forward with backward, and the search.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from gputune.bench_process import Context
from gputune.benches import kind_of
from gputune.benches._convolutions import Convolution, Group, Point, baseline, groups
from gputune.benches._errors import first_sentence, out_of_memory
from gputune.benches._fp32_errors import relative_error
from gputune.benches._matmul import set_flags
from gputune.benches._timing import Arm, Metric, interleave, or_gap
from gputune.facts.gap import Gap
from gputune.measurement import Measurement

SECONDS = {"cuda": {"standard": 4, "thorough": 50}, "cpu": {"standard": 5, "thorough": 30}}
RANK = 7

IMAGES = {"cuda": (64, 56), "cpu": (4, 28)}
"""Images in a batch, and pixels on a side, by kind of device."""
LEAST_IMAGES = 8
"""Fewer images do not fill a GPU."""
BLOCK_SECONDS = 0.03
"""Shorter than usual: calibration takes as long as two blocks, for each of many arms."""


def measure(context: Context) -> Iterator[Measurement | Gap]:
    import torch

    for dtype in context.dtypes:
        if dtype in ("float32", "tf32"):
            yield _error(context, dtype)
    plan = groups(context.dtypes, context.main_dtype, cuda=context.cuda, thorough=context.budget == "thorough")
    end, left = time.monotonic() + context.seconds, sum(map(len, plan))
    benchmark_before = torch.backends.cudnn.benchmark
    try:
        for group in plan:
            share = (end - time.monotonic()) * len(group) / left
            left -= len(group)
            context.say(_title(group))
            yield from _measured(context, group, share)
    finally:
        torch.backends.cudnn.benchmark = benchmark_before


def _title(group: Group) -> str:
    """A group in words: `tf32 and float32, training of 3x3`."""
    dtypes = " and ".join(dict.fromkeys(point.dtype for point in group))
    kernels = " and ".join(dict.fromkeys(point.convolution.name for point in group))
    return f"{dtypes}, {'training of ' if group[0].training else ''}{kernels}"


def _measured(context: Context, group: Group, seconds: float) -> Iterator[Measurement | Gap]:
    """The group's rows, with half as many images each time that memory runs out; a Gap where too few are left."""
    import torch

    all_images, _ = IMAGES[kind_of(context.device)]
    images = all_images
    while True:
        try:
            rows = _interleaved(context, group, images, seconds)
            break
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            why = first_sentence(error)
        torch.cuda.empty_cache()  # only here: the error held the failed arms
        if images // 2 < LEAST_IMAGES:
            yield Gap(fact="bench.conv", reason=f"{_title(group)}, {images} images: {why}")
            return
        images //= 2
    for row in or_gap(rows, "bench.conv", _title(group)):
        if images != all_images and isinstance(row, Measurement):
            row.params["images"] = images
        yield row


def _interleaved(context: Context, group: Group, images: int, seconds: float) -> list[Measurement]:
    """Measure all points in turn.

    torch caches the plan of a shape by thread, whatever `cudnn.benchmark` says: so the arms that search run on a
    thread of their own.
    """
    with ThreadPoolExecutor(1, initializer=partial(_use, context)) as searching:
        arms = {point: _arm(context, point, images) for point in group}
        for point, arm in arms.items():
            other = baseline(point, group)
            arm.baseline = arms[other] if other else None
            if point.search:
                arm.within = lambda block: searching.submit(block).result()
        return interleave(context, list(arms.values()), seconds, Metric("conv", "TFLOP/s"), BLOCK_SECONDS)


def _use(context: Context) -> None:
    """Select the device in this thread: the current device belongs to a thread, too."""
    import torch

    torch.cuda.set_device(context.device)


def _arm(context: Context, point: Point, images: int) -> Arm:
    pixels = IMAGES[kind_of(context.device)][1]
    return Arm(
        params=point.params,
        run=_run(context, point, images, pixels),
        work=point.convolution.operations(images, pixels, training=point.training) / 1e12,
        before=partial(_set_flags, point),
    )


def _set_flags(point: Point) -> None:
    import torch

    set_flags(point.dtype)
    torch.backends.cudnn.benchmark = bool(point.search)


def _run(context: Context, point: Point, images: int, pixels: int) -> Callable[[], Any]:
    """A function that runs one forward pass, or one forward and backward pass from a random gradient."""
    import torch

    what = point.convolution
    x, w = _tensors(context, what, point.dtype, images, pixels)
    if point.channels_last:
        x, w = (tensor.to(memory_format=torch.channels_last) for tensor in (x, w))
    convolve = partial(
        torch.nn.functional.conv2d,
        padding=what.kernel // 2,
        groups=what.channels_in if what.depthwise else 1,
    )
    if not point.training:
        return lambda: convolve(x, w)
    inputs = [w.requires_grad_()] if what.first else [x.requires_grad_(), w.requires_grad_()]
    gradient = torch.randn(images, what.channels_out, pixels, pixels, device=context.device, dtype=x.dtype)
    if point.channels_last:
        gradient = gradient.to(memory_format=torch.channels_last)
    return lambda: torch.autograd.grad(convolve(x, w), inputs, gradient)


def _tensors(context: Context, what: Convolution, dtype: str, images: int, pixels: int) -> tuple[Any, Any]:
    """Random images and weights, scaled so that the outputs stay near 1."""
    import torch

    kind = getattr(torch, "float32" if dtype == "tf32" else dtype)
    generator = torch.Generator(device=context.device).manual_seed(0)
    _, inputs, *kernel = what.weight_shape
    x = torch.randn(images, what.channels_in, pixels, pixels, device=context.device, generator=generator)
    w = torch.randn(what.weight_shape, device=context.device, generator=generator)
    return x.to(kind), (w / (inputs * kernel[0] * kernel[1]) ** 0.5).to(kind)


def _error(context: Context, dtype: str) -> Measurement:
    """Relative error of a convolution against float64, which shows the precision that it really ran in."""
    import torch

    x, w = _tensors(context, Convolution(channels_in=64, channels_out=64), dtype, 2, 28)
    exact = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    set_flags(dtype)
    got = torch.nn.functional.conv2d(x, w, padding=1).double()
    return Metric("conv", "1", "relative_error").row(context, [relative_error(got, exact)], {"dtype": dtype})
