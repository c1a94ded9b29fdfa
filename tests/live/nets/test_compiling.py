"""What compiling may cost a program: the first compile, and then some seconds more."""

import sys
from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gputune.live.nets import compiling
from gputune.live.nets.compiling import ALIKE, EXPECTED, MOST_MORE, Compiling, Costs, signature


class Program:
    """A model whose compiled calls take `seconds` for each new shape, or for each call of `again`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, seen: tuple[int, ...] = ()) -> None:
        self.now, self.graphs, self.seconds = 0.0, 0, seconds
        self.said: list[str] = []
        self.failed: list[str] = []
        self.again = False
        self.made: list[bool] = []
        monkeypatch.setattr(compiling, "graphs", lambda: self.graphs)
        self.costs = Costs(lambda: self.now)
        self.call = self.another(seen)

    def another(self, seen: tuple[int, ...] = ()) -> Compiling:
        """The call of another model of the same kind."""
        return Compiling(
            self.make,
            lambda x: "uncompiled",
            {signature(((torch.ones(one),), {})) for one in seen},
            say=self.said.append,
            failed=self.failed.append,
            costs=self.costs,
        )

    def make(self, is_dynamic: bool, goes_on: Callable[[], bool]) -> Callable[[Any], str]:
        self.made.append(is_dynamic)
        self.goes_on = goes_on
        known: set[Any] = set()

        def call(x: Any) -> str:
            shape = "any" if is_dynamic else tuple(x.shape)
            if self.again or shape not in known:
                known.add(shape)
                self.now += self.seconds
                self.graphs += 1
            return "for any shape" if is_dynamic else "compiled"

        return call

    def __call__(self, size: int) -> str:
        return str(self.call(torch.ones(size)))


def test_one_shape_is_compiled_once_and_a_long_compile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=40.0)
    assert [program(4) for _ in range(3)] == ["compiled"] * 3
    assert program.said == ["torch.compile took 40 s"]


def test_another_shape_is_compiled_for_any_if_there_is_time_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=3.0)
    assert [program(size) for size in (4, 5, 6, 4)] == ["compiled", "for any shape", "for any shape", "compiled"]
    assert program.now == 6.0


def test_or_else_runs_uncompiled_until_the_program_has_run_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=40.0)
    assert [program(size) for size in (4, 5, 4)] == ["compiled", "uncompiled", "compiled"]
    program.now += 50 * (40.0 - MOST_MORE) + 1
    assert program(5) == "for any shape"
    assert program.failed == []


def test_shapes_that_vary_from_the_start_wait_for_the_one_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=40.0, seen=(3,))
    assert [program(size) for size in (4, 5, 6, 4)] == ["uncompiled"] * 4
    program.now += 50 * (EXPECTED - MOST_MORE) + 1
    assert [program(size) for size in (4, 5, 6)] == ["for any shape"] * 3
    assert (program.made, program.failed) == ([True], [])


def test_no_further_graph_is_begun_if_there_is_no_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=MOST_MORE - 1)
    program(4)
    program(5)
    assert not program.goes_on()


def test_models_alike_are_compiled_as_long_as_there_is_time_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=6.0)
    calls = [program.another()(torch.ones(4)) for _ in range(100)]
    assert calls == ["compiled"] * calls.count("compiled") + ["uncompiled"] * calls.count("uncompiled")
    assert MOST_MORE / 2 < program.now - ALIKE * 6.0 <= MOST_MORE + 1
    waits = program.another()
    assert waits(torch.ones(4)) == "uncompiled"
    program.now += 50 * 6.0 + 1
    assert waits(torch.ones(4)) == "compiled"
    assert program.failed == []


def test_a_compile_that_a_time_limit_ended_is_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(signum: int, frame: Any) -> None:
        raise TimeoutError

    def late(is_dynamic: bool, goes_on: Callable[[], bool]) -> Callable[[Any], str]:
        return lambda x: handler(14, sys._getframe())  # type: ignore[func-returns-value]

    program = Program(monkeypatch, seconds=6.0)
    monkeypatch.setattr(program, "make", late)
    with pytest.raises(TimeoutError):
        program.another()(torch.ones(4))
    assert program.another()(torch.ones(4)) == "uncompiled"
    assert program.failed == ["a signal handler of the program's raised TimeoutError while it was compiled"]


def test_what_compiles_again_and_again_is_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=8.0)
    program(4)
    program.again = True
    program(4)
    assert program.failed == []
    program(4)
    assert len(program.failed) == 1
    assert program.now < 8.0 + 2 * MOST_MORE


def test_what_compiles_again_for_any_shape_leaves_the_first_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, seconds=8.0)
    program(4)
    program(5)
    program.again = True
    program(6)
    program.again = False
    assert (program(7), program(4)) == ("uncompiled", "compiled")
    assert (len(program.said), program.failed) == (2, [])


def test_a_signature_tells_shapes_numbers_and_words_and_not_values() -> None:
    one = ((torch.ones(2, 3), [torch.zeros(4)]), {"steps": 3, "mode": "sum"})
    assert signature(UserDict(ids=torch.ones(2))) != signature(UserDict(ids=torch.ones(3)))
    other = ((torch.zeros(2, 3), [torch.ones(4)]), {"steps": 3, "mode": "sum"})
    assert signature(one) == signature(other)
    assert signature(one) != signature(((torch.ones(2, 3), [torch.zeros(4)]), {"steps": 4, "mode": "sum"}))
