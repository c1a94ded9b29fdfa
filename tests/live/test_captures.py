"""A CUDA graph that a program captures has in it what was tested by then, and nothing that may have to go off later."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hands_on import capture, convnet, mlp, unfollowed

from gputune.knobs._called import PLACE
from gputune.live import injection
from gputune.live.advice import Advice
from gputune.live.applied import Applied
from gputune.live.call import call_of
from gputune.live.injection import Injection
from gputune.live.nets import slower

X = torch.ones(2, 4)
WHY = "the program captures a CUDA graph, in which it cannot be turned off later"


class Program:
    def __init__(self, model: Any, **general: Any) -> None:
        self.said: list[str] = []
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.injection = Injection(
            Advice(device="cpu", general={"amp_dtype": "bfloat16", **general}), self._no_flag, self.said.append
        )
        self.injection.start()

    def _no_flag(self, name: str, value: Any) -> Applied:
        raise AssertionError(name)

    def trains(self, steps: int, x: Any = X) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.model(x).square().mean().backward()
            self.optimizer.step()

    @property
    def is_mixed(self) -> bool:
        return getattr(vars(self.model).get(PLACE), "dtype", None) is not None

    @property
    def became(self) -> str:
        row = self.injection.rows["amp_dtype"]
        return f"{row.status}: {row.why}"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.delenv("RANK", raising=False)
    with unfollowed():
        yield Program(mlp())


def test_nothing_is_turned_on_in_a_program_that_is_still_looked_at(program: Program) -> None:
    program.trains(1)
    capture()
    program.trains(4)
    assert (program.is_mixed, program.said) == (False, [])
    assert program.became == "skipped: the program captures a CUDA graph"


@pytest.mark.parametrize(
    "steps", [2, 3, 5, 12], ids=["a call is awaited", "it is kept", "it was compared", "steps are timed"]
)
def test_what_is_not_yet_tested_goes_off_and_is_told_once(program: Program, steps: int) -> None:
    program.trains(steps)
    assert "put into Sequential" in program.said[0]
    capture()
    assert not program.is_mixed
    program.trains(8)
    capture()
    assert (program.is_mixed, program.said[1:]) == (False, [f"amp_dtype turned off: {WHY}"])
    assert program.became == f"failed: {WHY}"


def test_what_was_tested_stays_on(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slower, "verdict", lambda pairs: True)
    program.trains(40)
    capture()
    assert program.is_mixed
    assert len(program.said) == 1


def test_channels_last_goes_off_all_the_same_as_a_graph_would_not_follow_weights_that_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slower, "verdict", lambda pairs: True)
    with unfollowed():
        program = Program(convnet(), channels_last=True)
        program.trains(40, torch.ones(2, 3, 8, 8))
        assert call_of(program.model, "cpu").channels_last
        capture()
        before = [one.data_ptr() for one in program.model.parameters()]
        program.trains(4, torch.ones(2, 3, 8, 8))
        assert not call_of(program.model, "cpu").channels_last
        assert program.is_mixed
        assert [one.data_ptr() for one in program.model.parameters()] == before


def test_also_where_nothing_more_is_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "MOST_MODELS", 1)
    monkeypatch.setattr(injection, "BRIEF", 1e6)
    monkeypatch.setattr(slower, "verdict", lambda pairs: True)
    with unfollowed():
        program = Program(convnet(), channels_last=True)
        program.trains(40, torch.ones(2, 3, 8, 8))
        torch.optim.SGD(mlp().parameters(), lr=0.01).step()
        assert program.said[-1].startswith("nothing is put into further models")
        capture()
        assert not call_of(program.model, "cpu").channels_last


@pytest.mark.parametrize("steps", [0, 3])
def test_nothing_is_turned_on_after_a_capture_in_any_model(program: Program, steps: int) -> None:
    program.trains(steps)
    capture()
    said = list(program.said)
    program.trains(3)
    program.model = other = mlp()
    program.optimizer = torch.optim.SGD(other.parameters(), lr=0.01)
    program.trains(4)
    assert (program.is_mixed, program.said) == (False, said)


def test_a_graph_of_the_compilers_is_none_of_the_programs(program: Program) -> None:
    program.trains(3)
    exec("capture()", {"capture": capture, "__name__": "torch._inductor.cudagraph_trees"})
    assert program.is_mixed
