"""Which convolutions are measured, and in which groups: the points of one group are measured in the same rounds.

Channel counts around multiples of 8 show what alignment is worth; 3 and 4 channels are a network's input, before and
after padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

ALIGNED = (8, 16, 32, 64, 96, 128, 256)
ODD = (7, 9, 15, 17, 31, 33, 63, 65)
NEAR_64 = (63, 64, 65, 128, 256)
SEARCHED = (64, 128, 256)
"""Channels at which cuDNN's own search is compared with its choice."""
INPUTS = (3, 4)
FIRST_CHANNELS = 64
"""The output channels of a network's first convolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution of stride 1, padded so that as many pixels come out as went in."""

    kernel: int = 3
    """Pixels on a side."""
    channels_in: int
    channels_out: int
    depthwise: bool = False

    @property
    def name(self) -> str:
        return f"{'depthwise ' if self.depthwise else ''}{self.kernel}x{self.kernel}"

    @property
    def first(self) -> bool:
        """Whether it is a network's first, whose input needs no gradient."""
        return self.channels_in in INPUTS

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        return (self.channels_out, 1 if self.depthwise else self.channels_in, self.kernel, self.kernel)

    def operations(self, images: int, pixels: int, *, training: bool = False) -> float:
        """Multiplications and additions over `images` of `pixels` on a side.

        The backward pass has two convolutions of the same size: the weight's gradient, and where needed the input's.
        """
        outputs, inputs, *kernel = self.weight_shape
        passes = (2 if self.first else 3) if training else 1
        return 2.0 * images * pixels**2 * outputs * inputs * kernel[0] * kernel[1] * passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A convolution and how it is computed."""

    convolution: Convolution
    dtype: str
    channels_last: bool
    training: bool = False
    search: bool | None = None
    """With `cudnn.benchmark`; None where it is off and nothing is compared with it."""

    @property
    def params(self) -> dict[str, str | int | float | bool]:
        """The parameters of its row."""
        what = self.convolution
        return {
            "dtype": self.dtype,
            "kernel": what.name,
            "channels": what.channels_in,
            **({"out": what.channels_out} if what.channels_out != what.channels_in else {}),
            "pass": "training" if self.training else "forward",
            "channels_last": self.channels_last,
            **({} if self.search is None else {"cudnn_benchmark": self.search}),
        }


Group = list[Point]


def baseline(point: Point, group: Group) -> Point | None:
    """The point that a point is decided against: search off, else the contiguous format, else TF32 for FP32."""
    others = [replace(point, search=False), replace(point, channels_last=False, search=None)]
    others += [replace(point, dtype="tf32")] if point.dtype == "float32" else []
    return next((other for other in others if other != point and other in group), None)


def groups(dtypes: Sequence[str], main: str, *, cuda: bool, thorough: bool) -> list[Group]:
    """All groups of a budget; `main` is the dtype that a network would be trained in.

    Training comes last: its runs are the longest, and it gets the time that the others leave.
    """
    if cuda:
        planned = list((_thorough_gpu if thorough else _standard_gpu)(dtypes, main))
    elif thorough:
        planned = [group for dtype in dtypes for group in _thorough_cpu(dtype)]
    else:
        planned = [_formats(dtype, _plain(32, 64, 63)) for dtype in dtypes]
    return sorted(planned, key=lambda group: group[0].training)


def _standard_gpu(dtypes: Sequence[str], main: str) -> Iterator[Group]:
    yield _formats(main, _plain(*SEARCHED))  # what a search is worth, whole training steps show
    first, padded = _first(FIRST_CHANNELS)
    odd = [*_formats(main, _plain(63, 65)), *_formats(main, [first])]
    yield [*odd, Point(convolution=padded, dtype=main, channels_last=True)]
    if "tf32" in dtypes:
        yield [Point(convolution=_plain(128)[0], dtype=dtype, channels_last=True) for dtype in ("tf32", "float32")]


def _thorough_gpu(dtypes: Sequence[str], main: str) -> Iterator[Group]:
    yield _searched(_formats(main, _plain(*ALIGNED)))
    yield _formats(main, _plain(*ODD))
    yield _formats(main, _first(FIRST_CHANNELS) + _pointwise(*NEAR_64))
    yield _formats(main, _depthwise(*NEAR_64))
    yield _formats(main, _plain(*ALIGNED), training=True)
    yield _formats(main, _plain(*ODD), training=True)
    yield _formats(main, _first(FIRST_CHANNELS) + _pointwise(*SEARCHED) + _depthwise(*SEARCHED), training=True)
    for together in _other(dtypes, main):
        yield [point for dtype in together for point in _formats(dtype, _plain(*SEARCHED))]
        yield [point for dtype in together for point in _formats(dtype, _plain(63, 65))]
        yield [point for dtype in together for point in _formats(dtype, _plain(64, 128), training=True)]


def _other(dtypes: Sequence[str], main: str) -> list[list[str]]:
    """The dtypes beside the main one, in groups. TF32 and full FP32 are compared with each other."""
    fp32 = [dtype for dtype in ("tf32", "float32") if dtype in dtypes and dtype != main]
    return [group for group in ([dtype for dtype in dtypes if dtype not in (main, "tf32", "float32")], fp32) if group]


def _thorough_cpu(dtype: str) -> list[Group]:
    few = (64, 128)
    return [
        _formats(dtype, _plain(31, 32, 33, 63, 64, 65, 128)),
        _formats(dtype, _first(32) + _pointwise(*few) + _depthwise(*few)),
        _formats(dtype, _plain(32, 64) + _pointwise(64) + _depthwise(64), training=True),
    ]


def _formats(dtype: str, convolutions: Sequence[Convolution], *, training: bool = False) -> Group:
    """Each convolution in both memory formats."""
    return [
        Point(convolution=convolution, dtype=dtype, channels_last=last, training=training)
        for convolution in convolutions
        for last in (False, True)
    ]


def _searched(group: Group) -> Group:
    """The group, with some points in channels_last measured both without and with cuDNN's own search.

    Forward passes only: cuDNN keeps the result of a search by thread, and the backward pass runs on autograd's own.
    """
    points: Group = []
    for point in group:
        both = point.channels_last and point.convolution.channels_in in SEARCHED
        points += [replace(point, search=on) for on in (False, True)] if both else [point]
    return points


def _plain(*channels: int) -> list[Convolution]:
    return [Convolution(channels_in=count, channels_out=count) for count in channels]


def _pointwise(*channels: int) -> list[Convolution]:
    return [replace(plain, kernel=1) for plain in _plain(*channels)]


def _depthwise(*channels: int) -> list[Convolution]:
    return [replace(plain, depthwise=True) for plain in _plain(*channels)]


def _first(channels: int) -> list[Convolution]:
    return [Convolution(channels_in=count, channels_out=channels) for count in INPUTS]
