"""The user's own matmuls, each as it is and with N and K padded.

`gputune probe --shapes FILE`, where each line of the file is `M N K` and, if it is not bfloat16, a dtype (bfloat16,
float16, tf32, float32) for `linear(x[M, K], w[N, K])`. The rate counts only the work that was asked for, so the ratio
is the gain of padding net of the work that it adds.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from gputune.advice.dimension_multiple import WORTH
from gputune.bench_process import Context, MatmulShape
from gputune.benches._errors import or_shortage
from gputune.benches._matmul import linear, operands, set_flags
from gputune.benches._timing import Arm, Metric, interleave, or_gap
from gputune.errors import UsageError
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.search.rounds import against_first

SECONDS = {"cuda": {"quick": 4, "standard": 5, "thorough": 10}, "cpu": {"quick": 4, "standard": 5, "thorough": 10}}
"""For each shape."""
RANK = 10
OPTION = "shapes"

DTYPES = ("bfloat16", "float16", "tf32", "float32")
FACT = "bench.matmul_shapes"
MOST_SHAPES = 32
MOST_BYTES = 1 << 16
"""No more is read of a file of shapes, which may be a device without an end."""
LARGEST = 1 << 24
MULTIPLES = {"bfloat16": (8, 64), "float16": (8, 64), "tf32": (4, 32), "float32": (4, 32)}
"""By dtype, the elements in 16 bytes, which Tensor Cores load at a time, and in 128, a cache line."""


def measure(context: Context) -> Iterator[Measurement | Gap]:
    seconds = context.seconds / max(1, len(context.shapes))
    for shape in context.shapes:
        context.say(name(shape))
        if shape.dtype not in context.dtypes:
            yield Gap(fact=FACT, reason=f"{name(shape)}: this device has no native {shape.dtype}")
            continue
        yield from or_shortage(_measured(context, shape, seconds), FACT, f"{name(shape)}: ")


def _measured(context: Context, shape: MatmulShape, seconds: float) -> Iterator[Measurement | Gap]:
    arms = against_first([_arm(context, shape, padded) for padded in variants(shape)])
    yield from or_gap(interleave(context, arms, seconds, Metric("matmul_shapes", "TFLOP/s")), FACT, name(shape))


def name(shape: MatmulShape) -> str:
    return f"{shape.m} x {shape.n} x {shape.k} {shape.dtype}"


def variants(shape: MatmulShape) -> list[MatmulShape]:
    padded = [replace(shape, n=_up(shape.n, multiple), k=_up(shape.k, multiple)) for multiple in MULTIPLES[shape.dtype]]
    return list(dict.fromkeys([shape, *padded]))


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _arm(context: Context, shape: MatmulShape, padded: MatmulShape) -> Arm:
    dtype, m, n, k = padded.dtype, padded.m, padded.n, padded.k
    return Arm(
        params={"shape": name(shape), "dtype": dtype, "m": m, "n": n, "k": k},
        run=linear(dtype, *operands(context, dtype, m, n, k)),
        work=2 * m * shape.n * shape.k / 1e12,
        before=partial(set_flags, dtype),
        worth=WORTH,
    )


def read(path: Path) -> tuple[MatmulShape, ...]:
    """The shapes of a file. Raises UsageError, one line with the file and the line's number."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is no text"
        raise UsageError(f"--shapes {path}: {why}", "name a text file of lines 'M N K [dtype]'") from None
    lines = ((number, line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), start=1))
    shapes = tuple(_shape(path, number, words) for number, words in lines if words)
    if not 0 < len(shapes) <= MOST_SHAPES:
        raise UsageError(
            f"--shapes {path}: {len(shapes)} shapes", f"give 1 to {MOST_SHAPES}, a line 'M N K [dtype]' each"
        )
    return shapes


def _shape(path: Path, number: int, words: list[str]) -> MatmulShape:
    sizes = [int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0 for word in words[:3]]
    dtype = words[3] if len(words) == 4 else DTYPES[0]
    if len(sizes) < 3 or len(words) > 4 or dtype not in DTYPES or not all(0 < size <= LARGEST for size in sizes):
        raise UsageError(
            f"--shapes {path}, line {number}: {' '.join(words)[:60]!r} is no matmul",
            f"write M N K, each from 1 to {LARGEST}, and if you like one of {', '.join(DTYPES)}",
        )
    m, n, k = sizes
    return MatmulShape(m=m, n=n, k=k, dtype=dtype)
