"""A line search compares losses in FP32 although gputune has TF32 on."""

from collections.abc import Iterator

import pytest
import torch

from gputune.knobs import _line_search
from gputune.live import flags, hook
from gputune.live.nets import later_settings, slower_tf32


@pytest.fixture(autouse=True)
def tf32(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """gputune has TF32 on, which on a CPU computes what FP32 does."""
    monkeypatch.setattr(flags, "rows", {})
    monkeypatch.setattr(flags, "_ours", {})
    monkeypatch.setattr(later_settings, "_flags", {})
    monkeypatch.setattr(slower_tf32, "watch", lambda: None)
    hook.apply("matmul_precision", "tf32")
    yield
    flags.set_back("matmul_precision", "the end")
    torch.set_float32_matmul_precision("highest")


def level() -> str:
    return torch.get_float32_matmul_precision()


def stepped() -> list[str]:
    """The precision in the closure of a step, and after it."""
    weight, seen = torch.nn.Parameter(torch.ones(3)), []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        seen.append(level())
        loss = (weight - 2).square().sum()
        loss.backward()
        return loss

    optimizer = torch.optim.LBFGS([weight], max_iter=3, line_search_fn="strong_wolfe")
    optimizer.step(closure)
    return [*sorted(set(seen)), level()]


def test_its_losses_are_computed_in_fp32_and_all_others_with_tf32() -> None:
    assert level() == "high"
    assert stepped() == ["highest", "high"]
    assert flags.rows_now()[0].status == "applied"


def test_a_step_that_raises_leaves_tf32_on() -> None:
    def closure() -> torch.Tensor:
        raise LookupError

    with pytest.raises(LookupError):
        torch.optim.LBFGS([torch.nn.Parameter(torch.ones(3))]).step(closure)
    assert (level(), _line_search.running) == ("high", [])


@pytest.mark.parametrize("its_own", ["high", "highest"])
def test_what_the_program_has_chosen_itself_stays(its_own: str) -> None:
    torch.set_float32_matmul_precision(its_own)
    assert stepped() == [its_own, its_own]
