"""The search for the fastest shape, against a model of a GPU that is computed: tiles, waves, a drifting clock and
noise.
"""

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from gputune.benches._peak_search import LARGEST, STEP, Shape, candidates, search, wave_efficiency

PEAK = 800.0
"""TFLOP/s of the model at its first clock."""
MOST = 5.5e12
"""Operations of the longest matmul: 7 ms of that."""
GRID = [Shape(*sizes) for sizes in itertools.product(range(1024, 15361, 1024), repeat=3)]


class Model:
    """A GPU whose multiprocessors compute tiles of 128 x 256 in waves, and whose clock falls by 15 % in ten seconds."""

    def __init__(self, multiprocessors: int, seed: int = 0, look_seconds: float = 0.01) -> None:
        self.multiprocessors, self.look_seconds = multiprocessors, look_seconds
        self.noise = random.Random(seed)
        self.seconds = 0.0
        self.looks: list[Shape] = []

    def now(self) -> float:
        return self.seconds

    def true(self, shape: Shape) -> float:
        tiles = math.ceil(shape.m / 128) * math.ceil(shape.n / 256)
        full = tiles / self.multiprocessors / math.ceil(tiles / self.multiprocessors)
        used = shape.m * shape.n / (tiles * 128 * 256)
        return PEAK * full * used * shape.k / (shape.k + 200)

    def rate(self, shape: Shape) -> float:
        self.looks.append(shape)
        self.seconds += self.look_seconds
        clock = 1 - 0.15 * min(1.0, self.seconds / 10)
        return self.true(shape) * clock * self.noise.gauss(1, 0.01)


def allowed(shape: Shape) -> bool:
    return shape.flops <= MOST


def found_by(model: Model, shapes: Sequence[Shape], seconds: float = 4.0) -> Shape:
    return search(shapes, model.rate, seconds, allowed, model.now)


@pytest.mark.parametrize("multiprocessors", [132, 108])
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_an_exhaustive_search_would(multiprocessors: int, seed: int) -> None:
    model = Model(multiprocessors, seed)
    best = max(model.true(shape) for shape in GRID if shape.flops <= MOST)
    shape = found_by(model, candidates(multiprocessors, MOST))
    assert model.true(shape) >= 0.99 * best
    assert len(model.looks) < 600
    assert shape.flops <= MOST


@pytest.mark.parametrize("look_seconds", [0.001, 0.01, 0.06])
@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_time_is_kept_to(look_seconds: float, seconds: float) -> None:
    model = Model(132, look_seconds=look_seconds)
    found_by(model, candidates(132, MOST), seconds)
    assert model.seconds <= seconds + 20 * look_seconds


def test_with_hardly_any_time_there_is_still_an_answer() -> None:
    model = Model(132)
    shapes = candidates(132, MOST)
    found = found_by(model, shapes, 0.0)
    assert (found.m, found.n) in {(shape.m, shape.n) for shape in shapes}
    assert len(model.looks) <= 6


def test_with_other_k_only_what_is_allowed_is_tried() -> None:
    model = Model(132)
    shape = search(
        candidates(132, MOST, 13312), model.rate, 4.0, lambda one: max(one.m, one.n, one.k) <= 13312, model.now
    )
    assert max(max(one.m, one.n, one.k) for one in model.looks) <= 13312
    assert shape.k in (9216, 12288)


def test_one_shape_is_the_answer() -> None:
    only = Shape(512, 512, 512)
    assert found_by(Model(132), [only]) == only


def test_without_shapes_there_is_none() -> None:
    with pytest.raises(ValueError, match=r".+"):
        found_by(Model(132), [])


def test_the_same_looks_find_the_same_shape() -> None:
    first, second = (found_by(Model(132, seed=3), candidates(132, MOST)) for _ in range(2))
    assert first == second


class TestCandidates:
    @pytest.mark.parametrize("multiprocessors", [132, 108, 128])
    def test_fill_their_waves(self, multiprocessors: int) -> None:
        shapes = candidates(multiprocessors, MOST)
        assert 20 < len(shapes) < 500
        assert all(wave_efficiency(shape, multiprocessors) >= 0.97 for shape in shapes)
        assert all(shape.flops <= MOST for shape in shapes)

    def test_a_column_more_than_a_wave_is_nearly_two(self) -> None:
        """143 tiles, or 150 the other way round, on 132 multiprocessors; a tile lies whichever way is better."""
        assert wave_efficiency(Shape(128 * 11, 256 * 12, 64), 132) == 1
        assert wave_efficiency(Shape(256 * 12, 128 * 11, 64), 132) == 1
        assert wave_efficiency(Shape(128 * 11, 256 * 12 + 1, 1024), 132) == pytest.approx(150 / 264)

    @pytest.mark.parametrize("largest", [4096, 2048])
    def test_fit_the_memory(self, largest: int) -> None:
        shapes = candidates(132, MOST, largest)
        assert shapes
        assert all(max(shape.m, shape.n, shape.k) <= largest for shape in shapes)

    def test_without_multiprocessors_there_are_no_waves(self) -> None:
        shapes = candidates(None, 1e14)
        sizes = range(2 * STEP, LARGEST + 1, STEP)
        assert {(shape.m, shape.n) for shape in shapes} == set(itertools.product(sizes, sizes))

    @pytest.mark.parametrize("most_flops", [1e9, 1e10, 1e11])
    def test_a_slow_device_gets_small_shapes(self, most_flops: float) -> None:
        shapes = candidates(None, most_flops, 4096)
        assert len(shapes) > 10
        assert all(shape.flops <= most_flops for shape in shapes)


def without_waves(shape: Shape) -> float:
    return 1.0 / (1 + 200 / shape.k + 100 / shape.m + 100 / shape.n)


def test_on_a_cpu_it_finds_the_fastest_too() -> None:
    shapes = candidates(None, 2e10, 4096)
    noise = random.Random(0)
    clock = itertools.count()

    def rate(shape: Shape) -> float:
        return without_waves(shape) * noise.gauss(1, 0.01)

    shape = search(shapes, rate, 600, lambda shape: shape.flops <= 2e10, lambda: float(next(clock)))
    assert without_waves(shape) >= 0.97 * max(without_waves(one) for one in shapes)
