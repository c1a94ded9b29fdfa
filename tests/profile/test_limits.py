"""What is written can be read: the largest profile of a probe is within every limit, and a larger one is refused."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making import profile, row

from gputune.bench_process import MatmulShape
from gputune.benches.matmul_shapes import DTYPES, LARGEST, MOST_SHAPES, name, variants
from gputune.errors import MeasureError
from gputune.facts.gap import Gap
from gputune.measurement import LOOKS, Measurement
from gputune.profile import Profile, dump, dump_json, limits, load, parse, save

SHIPPED = Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml"
SAMPLE = -1.234e-300
"""As long as a sample of four significant digits can be."""


def shape_rows(conditions: dict[str, float]) -> list[Measurement]:
    sizes = [LARGEST - 2 * number - 1 for number in range(MOST_SHAPES)]
    shapes = [MatmulShape(m=size, n=size, k=size, dtype=DTYPES[0]) for size in sizes]
    return [
        Measurement(
            bench="matmul_shapes", metric="throughput", unit="TFLOP/s", samples=(SAMPLE,), device="cuda:15",
            params={"shape": name(shape), "dtype": one.dtype, "m": one.m, "n": one.n, "k": one.k},
            conditions=conditions,
        )
        for shape in shapes
        for one in variants(shape)
    ]  # fmt: skip


def maximal() -> Profile:
    """A measured profile with the most shapes, all rows full of the longest samples, and more gaps than there are."""
    measured = load(SHIPPED)
    conditions = max((one.conditions for one in measured.measurements), key=len)
    rows = [one for one in measured.measurements if one.bench != "matmul_shapes"] + shape_rows(conditions)
    full = tuple(replace(one, samples=(SAMPLE,) * LOOKS[-1], conditions=conditions) for one in rows)
    gaps = tuple(Gap(fact=f"gpu.{number % 16}.a_fact_{number}", reason="x" * 300) for number in range(200))
    return replace(measured, measurements=full, gaps=gaps)


@pytest.mark.slow
@pytest.mark.parametrize("write", [dump, dump_json])
def test_the_largest_profile_that_a_probe_makes_can_be_read(write: Any) -> None:
    largest = maximal()
    text = write(largest).encode()
    assert 2 * SHIPPED.stat().st_size < len(text) < 0.9 * limits.MOST_BYTES
    assert parse(text) == largest


@pytest.mark.slow
@pytest.mark.parametrize("write", [dump, dump_json])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"measurements": (row("b", "m", 1.0),) * 2001}, "more than 2000 entries in one place"),
        ({"measurements": (replace(row("b", "m", 1.0), samples=(1.0,) * 100),) * 1300}, "more than 131072 keys and"),
        ({"gaps": (Gap(fact="x", reason="x" * 4000),) * 300}, "the profile takes 11.. KiB, and 1024 KiB is the most"),
        ({"measurements": (row("b", "m", 1.0, seed=10**19),)}, "a whole number of more than 19 digits"),
        ({"measurements": (row("b", "m", 1.0, seconds=float("inf")),)}, "inf is not a finite number"),
    ],
)  # fmt: skip
def test_what_could_not_be_read_is_not_written(write: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        write(profile(**more))


@pytest.mark.parametrize("write", [dump, dump_json])
@pytest.mark.parametrize("reason", ["x" * 4097, "\udcff" * 1000])
def test_a_text_that_is_too_long_is_cut(write: Any, reason: str) -> None:
    [gap] = parse(write(profile(gaps=(Gap(fact="x", reason=reason),))).encode()).gaps
    assert len(gap.reason) == 4096
    assert gap.reason.endswith("...")


@pytest.mark.slow
def test_a_profile_that_is_too_large_leaves_the_old_file(tmp_path: Path) -> None:
    save(profile(), tmp_path / "p.yaml")
    with pytest.raises(MeasureError, match=re.escape("--shapes")):
        save(profile(gaps=(Gap(fact="x", reason="x" * 4000),) * 300), tmp_path / "p.yaml")
    assert load(tmp_path / "p.yaml") == profile()
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]
