"""Settings that make a program's own steps slower are turned off."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hands_on import capture, mlp, rooted, stepped, unfollowed

from gputune.live import flags
from gputune.live.installer import Installer
from gputune.live.nets import later_settings, slower
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


def trained(
    monkeypatch: pytest.MonkeyPatch,
    with_it: float,
    without: float,
    *,
    after_step: Callable[[], object] = lambda: None,
    waits: bool = False,
) -> tuple[list[tuple[Any, str]], Any]:
    """What is turned off in a model whose blocks take so long with mixed precision and without; and its call. It is
    also to be compiled, which `waits` for time as its shapes vary.
    """
    model, off = mlp(), list[tuple[Any, str]]()
    optimizer = stepped(model, torch.optim.SGD)
    root = rooted(model, optimizer, failed=lambda names, why: off.append((names, why)), signatures={"of another shape"})
    installer = Installer([root], guarded=True)
    settings = {"amp_dtype": "bfloat16", **({"compile": True} if waits else {})}
    assert installer.obstacles(settings) == {}
    installer.switch(settings)

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
            after_step()
    return off, root.call


def test_slower_mixed_precision_is_turned_off_with_both_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    off, call = trained(monkeypatch, with_it=0.05, without=0.04)
    assert off == [(["amp_dtype"], "a step takes 50 ms with it, and 40 ms without")]
    assert call.dtype is None


def test_so_is_it_where_compiling_waits_which_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    off, call = trained(monkeypatch, with_it=0.05, without=0.04, waits=True)
    assert off == [(["amp_dtype"], "a step takes 50 ms with it, and 40 ms without")]
    assert (call.dtype, [one.name for one in call.suspects.on]) == (None, ["compile"])


def test_faster_mixed_precision_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    off, call = trained(monkeypatch, with_it=0.04, without=0.05)
    assert (off, call.dtype) == ([], torch.bfloat16)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether cuDNN searches, which gputune has turned on."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    for held in ("rows", "_ours", "_aside"):
        monkeypatch.setattr(flags, held, {})
    monkeypatch.setattr(later_settings, "_flags", {})
    flags.set_now("cudnn_benchmark", True)
    return lambda: torch.backends.cudnn.benchmark


@pytest.mark.parametrize("without", [0.04, 0.05, 0.06])
def test_cudnn_searches_once_it_is_clear_what_stays_on_and_counts_as_applied_meanwhile(
    monkeypatch: pytest.MonkeyPatch, searches: Callable[[], bool], without: float
) -> None:
    seen, rows = list[bool](), dict[str, bool]()

    def after_step() -> None:
        seen.append(searches())
        rows.update((f"{row.status}: {row.why}", searches()) for row in flags.rows_now())

    trained(monkeypatch, with_it=0.05, without=without, after_step=after_step)
    assert (seen[0], seen[-1], sorted(seen)) == (False, True, seen)
    assert rows == {
        "applied: in this process; off until it is clear what else stays on": False,
        "applied: in this process": True,
    }


def test_cudnn_never_searches_within_a_graph(monkeypatch: pytest.MonkeyPatch, searches: Callable[[], bool]) -> None:
    trained(monkeypatch, with_it=0.05, without=0.06, after_step=capture)
    assert not searches()
    row = flags.rows["cudnn_benchmark"]
    assert (row.status, row.why) == ("skipped", "the program captures a CUDA graph, in which cuDNN cannot search")


def test_cudnn_searches_in_a_program_that_does_not_call_a_model_again(
    monkeypatch: pytest.MonkeyPatch, searches: Callable[[], bool]
) -> None:
    monkeypatch.setattr(slower, "_is_ready", lambda root: False)
    monkeypatch.setattr(slower, "SECONDS", 0.0)
    trained(monkeypatch, with_it=0.05, without=0.06)
    assert searches()


@pytest.mark.parametrize(("whose", "dtype"), [("the model", torch.bfloat16), ("another", None)])
def test_if_another_thread_trains_the_model_the_settings_are_on_again(whose: str, dtype: Any) -> None:
    model = mlp()
    root = rooted(model, stepped(model, torch.optim.SGD))
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"amp_dtype": "bfloat16"}) == {}
    installer.switch({"amp_dtype": "bfloat16"})

    def train(one: Any, optimizer: Any, *, until_off: bool) -> None:
        for _ in range(100):
            if until_off and root.call.dtype is None:
                break
            optimizer.zero_grad()
            one(torch.ones(2, 4)).sum().backward()
            optimizer.step()

    with unfollowed():
        Slower([root]).start()
        train(model, root.optimizers[0], until_off=True)
        assert root.call.dtype is None
        other = model if whose == "the model" else mlp()
        given = (other, torch.optim.SGD(other.parameters(), lr=0.01))
        thread = threading.Thread(target=train, args=given, kwargs={"until_off": False})
        thread.start()
        thread.join()
    assert root.call.dtype is dtype


def test_what_the_program_sets_meanwhile_stays(monkeypatch: pytest.MonkeyPatch, searches: Callable[[], bool]) -> None:
    def after_step() -> None:
        torch.backends.cudnn.benchmark = False

    trained(monkeypatch, with_it=0.05, without=0.06, after_step=after_step)
    assert not searches()
    assert [row.status for row in flags.rows_now()] == ["changed-later"]
