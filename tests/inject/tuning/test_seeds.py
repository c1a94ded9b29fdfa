"""Seeds that are shifted from outside, in this process (which has them back) and in fresh ones."""

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from trials.guard_cases import untouched

from gputune.inject.tuning import seeds

DRAWS: dict[str, Callable[[], float]] = {
    "torch": lambda: float(torch.rand(())),
    "random": random.random,
    "numpy": numpy.random.rand,
}
SEEDED: dict[str, Callable[[Any], Any]] = {
    "torch": lambda seed: torch.manual_seed(seed=seed),
    "random": lambda seed: random.seed(a=seed),
    "numpy": lambda seed: numpy.random.seed(seed=seed),
}


def drawn(by: int, program: Callable[[], Any]) -> Any:
    with untouched():
        seeds.shift(by)
        return program()


@pytest.mark.parametrize("name", DRAWS)
class TestOwnSeeds:
    def test_without_a_shift_are_what_they_are(self, name: str) -> None:
        SEEDED[name](7)
        expected = DRAWS[name]()
        assert drawn(0, lambda: (SEEDED[name](7), DRAWS[name]())[1]) == expected

    def test_are_shifted(self, name: str) -> None:
        SEEDED[name](9)
        expected = DRAWS[name]()
        assert drawn(2, lambda: (SEEDED[name](7), DRAWS[name]())[1]) == expected

    def test_of_numpys_kind_are_as_well(self, name: str) -> None:
        SEEDED[name](9)
        expected = DRAWS[name]()
        seed: Any = numpy.int64(7) if name != "torch" else True + 6
        assert drawn(2, lambda: (SEEDED[name](seed), DRAWS[name]())[1]) == expected

    def test_that_are_missing_are_fixed(self, name: str) -> None:
        once, again, other = drawn(0, DRAWS[name]), drawn(0, DRAWS[name]), drawn(1, DRAWS[name])
        assert once == again != other


def test_a_generator_of_numpys() -> None:
    expected = numpy.random.default_rng(5).random()
    assert drawn(0, lambda: numpy.random.default_rng(5).random()) == expected
    assert drawn(2, lambda: numpy.random.default_rng(3).random()) == expected
    assert drawn(2, lambda: numpy.random.default_rng(seed=3).random()) == expected


def test_a_generator_that_was_to_have_an_unknown_state_repeats_all_the_same() -> None:
    def program() -> list[float]:
        return [numpy.random.default_rng().random(), numpy.random.default_rng(None).random()]

    def fresh(by: int) -> list[float]:
        seeds._unknowns = itertools.count(1)  # as in a process of its own
        return drawn(by, program)  # type: ignore[no-any-return]

    one, again, other = fresh(0), fresh(0), fresh(1)
    assert one == again
    assert len({*one, *other}) == 4


@pytest.mark.parametrize("reseed", [random.seed, numpy.random.seed])
def test_seeding_from_nowhere_repeats(reseed: Any) -> None:
    draw = random.random if reseed is random.seed else numpy.random.rand

    def program() -> float:
        (random if draw is random.random else numpy.random).seed()
        return float(draw())

    def fresh(by: int) -> float:
        seeds._unknowns = itertools.count(1)
        return drawn(by, program)  # type: ignore[no-any-return]

    assert fresh(0) == fresh(0) != fresh(1)


def test_other_seeds_are_left_alone() -> None:
    """Lists, texts and negative numbers."""
    numpy.random.seed([1, 2])
    expected = numpy.random.rand()
    assert drawn(2, lambda: (numpy.random.seed([1, 2]), numpy.random.rand())[1]) == expected
    random.seed("text")
    text = random.random()
    assert drawn(2, lambda: (random.seed("text"), random.random())[1]) == text
    assert drawn(2, lambda: torch.manual_seed(-5).initial_seed()) == torch.manual_seed(-5).initial_seed()


def test_a_torch_generator_of_the_programs_is_left_alone() -> None:
    expected = torch.rand((), generator=torch.Generator().manual_seed(3))
    assert drawn(2, lambda: torch.rand((), generator=torch.Generator().manual_seed(3))) == expected


def test_an_order_of_samples_follows_torchs_seed() -> None:
    def order() -> list[int]:
        return [int(one) for one in torch.utils.data.DataLoader(list(range(20)), shuffle=True)]

    assert drawn(0, order) == drawn(0, order) != drawn(1, order)


def test_every_way_to_seed_is_covered() -> None:
    def program() -> list[bool]:
        return [
            torch.random.manual_seed is torch.manual_seed,
            torch.cuda.random.manual_seed_all is torch.cuda.manual_seed_all,
            torch.cuda.random.manual_seed is torch.cuda.manual_seed,
        ]

    assert drawn(1, program) == [True] * 3


PROGRAM = """
import json, sys, types
class Torch(types.ModuleType):  # stands in for torch, which would import NumPy itself
    def __init__(self, name):
        super().__init__(name)
        self.random = types.SimpleNamespace()
        self.cuda = types.SimpleNamespace(random=types.SimpleNamespace(), manual_seed=print, manual_seed_all=print)
        self.manual_seed, self.initial_seed = (lambda seed: None), (lambda: 1)
sys.modules["torch"] = Torch("torch")
sys.path.insert(0, {folder!r})
import seeds
seeds.shift({by})
assert "numpy" not in sys.modules
import numpy
first = numpy.random.rand()
numpy.random.seed(5)
print(json.dumps([first, numpy.random.rand(), numpy.random.default_rng(5).random()]))
"""


@pytest.mark.slow
def test_numpy_that_is_imported_later() -> None:
    def run(by: int) -> Any:
        program = PROGRAM.format(folder=str(Path(seeds.__file__).parent), by=by)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    numpy.random.seed(5)
    assert run(0)[1:] == [numpy.random.rand(), numpy.random.default_rng(5).random()]
    numpy.random.seed(7)
    assert run(2)[1:] == [numpy.random.rand(), numpy.random.default_rng(7).random()]
    assert run(0)[0] == run(0)[0] != run(2)[0]
