"""What a model computes with settings is compared once with what it computes without, in the program itself."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hands_on import rooted, unfollowed
from torch import nn

from gputune.live import flags
from gputune.live.installer import Installer
from gputune.live.nets.results import Results

X = torch.linspace(-1, 1, 64).view(8, 8)


class Net(nn.Module):
    """`then` says what it does with what its layers compute."""

    def __init__(self, then: Any) -> None:
        super().__init__()
        self.first, self.second, self.then = nn.Linear(8, 32), nn.Linear(32, 8), then
        self.dropout = nn.Dropout(0.5 if then is None else 0.0)
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        out = self.second(self.dropout(self.first(x).relu()))
        return out if self.then is None else self.then(out)


def far(out: Any) -> Any:
    """Positions that bfloat16 does not tell apart."""
    return out * (torch.arange(65536, 65544).to(out.dtype) - 65540).cos()


def codes(out: Any) -> Any:
    return out, (out.detach() * 4000).round().to(torch.int64)


def trained(model: Any, obstacle: str | None = None, steps: int = 4) -> tuple[list[str], list[str], Any]:
    """What was turned off, what was said, and the call of a model in mixed precision after some steps."""
    torch.manual_seed(0)
    off, said = list[str](), list[str]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    root.say = said.append
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"amp_dtype": "bfloat16"}) == {}
    installer.switch({"amp_dtype": "bfloat16"})
    root.call.suspects.nets.append(Results(root, obstacle))
    with unfollowed():
        for _ in range(steps):
            optimizer.zero_grad()
            out = model(X)
            (out[0] if isinstance(out, tuple) else out).square().mean().backward()
            optimizer.step()
    return off, said, root.call


@pytest.mark.parametrize("then", [far, codes])
def test_results_beyond_the_precision_turn_it_off(then: Any) -> None:
    torch.manual_seed(0)
    off, said, call = trained(Net(then))
    assert (off, said, call.dtype) == (["amp_dtype"], [], None)


@pytest.mark.parametrize("then", [None, torch.tanh])
def test_results_within_the_precision_and_by_chance_leave_it_on(then: Any) -> None:
    torch.manual_seed(0)
    off, said, call = trained(Net(then))
    assert (off, said, call.dtype, call.suspects.nets) == ([], [], torch.bfloat16, [])


def test_the_program_goes_on_as_if_nothing_had_been_compared() -> None:
    def state(compares: bool) -> list[Any]:
        torch.manual_seed(0)
        model = Net(None)
        model.norm = nn.BatchNorm1d(8)
        model.then = model.norm
        trained(model, None if compares else "it may not")
        return [model.calls, model.norm.num_batches_tracked, model.norm.running_mean.tolist(), torch.rand(1).item()]

    assert state(True) == state(False)


def test_why_nothing_is_compared_is_said() -> None:
    off, said, call = trained(Net(far), "its forward changes the variable seen")
    assert off == []
    assert said == ["the results of Net were not compared with FP32's: its forward changes the variable seen"]
    assert call.dtype is torch.bfloat16


def test_a_layout_that_stays_is_compared_with_the_usual_one_and_no_weight_moves() -> None:
    torch.manual_seed(0)
    model, off = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Conv2d(8, 4, 3)), list[str]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    root.say = off.append
    installer = Installer([root], guarded=True)
    installer.obstacles({"channels_last": True, "amp_dtype": "bfloat16"})
    installer.switch({"channels_last": True, "amp_dtype": "bfloat16"})
    root.call.suspects.fixed = {"channels_last"}
    root.call.suspects.nets.append(Results(root, None))
    before = [one.data_ptr() for one in model.parameters()]
    with unfollowed():
        model(torch.randn(2, 3, 8, 8)).square().mean().backward()
        optimizer.step()
    assert off == []
    assert root.call.suspects.nets == []
    assert [one.data_ptr() for one in model.parameters()] == before
    assert root.call.instead is None


@pytest.fixture
def tf32(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """gputune has TF32 on, which on a CPU computes what FP32 does."""
    monkeypatch.setattr(flags, "rows", {})
    monkeypatch.setattr(flags, "_ours", {})
    flags.set_now("matmul_precision", "tf32")
    yield
    flags.set_back("matmul_precision", "the end")


@pytest.mark.usefixtures("tf32")
def test_a_report_in_between_does_not_take_that_for_the_programs_choice() -> None:
    with flags.without(["matmul_precision"]):
        assert torch.get_float32_matmul_precision() == "highest"
        assert [(row.status, row.after) for row in flags.rows_now()] == [("applied", "tf32")]


@pytest.mark.usefixtures("tf32")
def test_tf32_is_off_in_the_plain_call_alone_and_not_blamed_for_another_setting() -> None:
    levels: list[str] = []

    def noted(out: Any) -> Any:
        levels.append(torch.get_float32_matmul_precision())
        return far(out)

    torch.manual_seed(0)
    off, said, _ = trained(Net(noted))
    assert (off, said) == (["amp_dtype"], [])
    assert {"high", "highest"} == set(levels)
    assert torch.get_float32_matmul_precision() == "high"
