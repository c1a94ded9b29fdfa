"""Settings that make a program's own steps slower are turned off."""

from typing import Any

import pytest
import torch
from hands_on import mlp, rooted, stepped, unfollowed

from gputune.live.installer import Installer
from gputune.live.nets import slower
from gputune.live.nets.slower import ENOUGH, FEW, MOST, ROW, Slower, verdict

FASTER, AS_FAST, SLOWER = (1.0, 2.0), (1.0, 1.0), (1.5, 1.0)


@pytest.mark.parametrize(
    ("pairs", "stays"),
    [
        ([], None),
        ([FASTER] * ENOUGH, True),
        ([FASTER, SLOWER, FASTER], None),
        ([SLOWER] * (ROW - 1), None),
        ([FASTER] + [SLOWER] * ROW, False),
        ([SLOWER, AS_FAST] * MOST, True),
        ([(3.5, 1.0)] * FEW, False),
        ([(1.0, 3.0)], True),  # whose steps are so long that one pair lost more than it may
    ],
)
def test_what_is_slower_in_many_pairs_in_a_row_does_not_stay(
    pairs: list[tuple[float, float]], stays: bool | None
) -> None:
    assert verdict(pairs) is stays


def trained(monkeypatch: pytest.MonkeyPatch, with_it: float, without: float) -> tuple[list[tuple[Any, str]], Any]:
    """What is turned off in a model whose blocks take so long with mixed precision and without; and its call."""
    model, off = mlp(), list[tuple[Any, str]]()
    optimizer = stepped(model, torch.optim.SGD)
    root = rooted(model, optimizer, failed=lambda names, why: off.append((names, why)))
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"amp_dtype": "bfloat16"}) == {}
    installer.switch({"amp_dtype": "bfloat16"})

    class Clock:
        def __init__(self) -> None:
            self._taken = without if root.call.dtype is None else with_it

        def stop(self) -> None:
            """It knows already."""

        def seconds(self) -> float:
            return self._taken

    monkeypatch.setattr(slower, "Clock", Clock)
    with unfollowed():
        Slower([root]).start()
        for _ in range(100):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    return off, root.call


def test_slower_mixed_precision_is_turned_off_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    off, call = trained(monkeypatch, with_it=0.05, without=0.04)
    assert off == [(["amp_dtype"], "a step takes 50 ms with it, and 40 ms without")]
    assert call.dtype is None


def test_faster_mixed_precision_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    off, call = trained(monkeypatch, with_it=0.04, without=0.05)
    assert (off, call.dtype) == ([], torch.bfloat16)
