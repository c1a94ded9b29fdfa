"""Seeds that are shifted from outside, in this process (which has them back) and in fresh ones."""

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from gputune.live.tuning import seeds

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
    undo = seeds.shift(by)
    try:
        return program()
    finally:
        undo()


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(("by", "seed", "seeded"), [(0, 7, 7), (2, 7, 9), (2, numpy.int64(7), 9)])
def test_own_seeds_are_shifted(name: str, by: int, seed: Any, seeded: int) -> None:
    SEEDED[name](seeded)
    expected = DRAWS[name]()
    given = int(seed) if name == "torch" else seed
    assert drawn(by, lambda: (SEEDED[name](given), DRAWS[name]())[1]) == expected


@pytest.mark.parametrize("name", DRAWS)
def test_seeds_that_are_missing_are_fixed(name: str) -> None:
    once, again, other = drawn(0, DRAWS[name]), drawn(0, DRAWS[name]), drawn(1, DRAWS[name])
    assert once == again != other


def test_a_generator_of_numpys() -> None:
    expected = numpy.random.default_rng(5).random()
    assert drawn(0, lambda: numpy.random.default_rng(5).random()) == expected
    assert drawn(2, lambda: numpy.random.default_rng(3).random()) == expected
    assert drawn(2, lambda: numpy.random.default_rng(seed=3).random()) == expected


@pytest.mark.parametrize(
    "draw",
    [
        lambda: numpy.random.default_rng().random(),
        lambda: numpy.random.default_rng(None).random(),
        lambda: (random.seed(), random.random())[1],
        lambda: (numpy.random.seed(), numpy.random.rand())[1],
    ],
)
def test_an_unknown_state_repeats_all_the_same_and_is_another_each_time(draw: Callable[[], float]) -> None:
    def fresh(by: int) -> tuple[float, float]:
        seeds._unknowns = itertools.count(1)  # as in a process of its own
        return drawn(by, lambda: (draw(), draw()))  # type: ignore[no-any-return]

    one, again, other = fresh(0), fresh(0), fresh(1)
    assert one == again
    assert len({*one, *other}) == 4


def test_other_seeds_are_left_alone() -> None:
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
        self.random = types.SimpleNamespace(manual_seed=print)
        self.cuda = types.SimpleNamespace(manual_seed=print, manual_seed_all=print)
        self.cuda.random = types.SimpleNamespace(manual_seed=print, manual_seed_all=print)
        self.manual_seed, self.initial_seed = (lambda seed: None), (lambda: 1)
sys.modules["torch"] = Torch("torch")
from gputune.live.tuning import seeds
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
        program = PROGRAM.format(by=by)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    numpy.random.seed(5)
    assert run(0)[1:] == [numpy.random.rand(), numpy.random.default_rng(5).random()]
    numpy.random.seed(7)
    assert run(2)[1:] == [numpy.random.rand(), numpy.random.default_rng(7).random()]
    assert run(0)[0] == run(0)[0] != run(2)[0]
