"""The orders of a measuring run, to a program that is made up, and what is left out after something failed."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from recorded import facts_of

from gputune.host import Host
from gputune.live.models import ModelKey
from gputune.live.orders import (
    BlockTimed,
    FindObstacles,
    Found,
    Hello,
    Obstacles,
    Order,
    StepsTraced,
    TimeBlock,
    TraceSteps,
)
from gputune.progress import Progress
from gputune.search.combination import DEFAULT, Combination
from gputune.trials import measuring
from gputune.trials.failure import Attempts, How, RunFailed
from gputune.trials.progress import TuneProgress
from gputune.trials.search_result import SearchResult, Wanted
from gputune.trials.start import Start

SECONDS = 0.01
HELLO = Hello(pid=1, entry="train.py", torch="2.11.0", device="cuda", rank=0, world=1, local=1)
MODEL = ModelKey(class_name="Net", digest="0" * 16)
FOUND = Found(trains=True, models=(MODEL,), families=(), shapes=((8, 4),), images=False)
CANDIDATES: dict[str, Any] = {"matmul_precision": "tf32", "fused_optimizer": True}


class Program:
    """Its starts end one after the other, or fail as `failure` says, at an order for which `ends` says so."""

    def __init__(
        self,
        device: str = "cuda",
        ends: Callable[[Order[Any]], bool] = lambda order: False,
        failure: RunFailed | None = None,
    ) -> None:
        self.hello = replace(HELLO, device=device)
        self.ends, self.failure = ends, failure or RunFailed(how="ended", detail="killed by signal 11")
        self.starts = 0
        self.orders: list[Order[Any]] = []

    def __call__(self, *_: Any) -> Self:
        self.starts += 1
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def first(self, answer: type[Found]) -> Found:
        return FOUND

    def ask(self, seconds: float, order: Order[Any]) -> Any:
        if isinstance(order, FindObstacles):
            return Obstacles(reasons={})
        self.orders.append(order)
        if self.ends(order):
            raise self.failure
        if isinstance(order, TraceSteps):
            return StepsTraced(seconds=(SECONDS, SECONDS))
        assert isinstance(order, TimeBlock)
        return BlockTimed(seconds=order.steps * SECONDS, peak_bytes=1000)

    def finish(self) -> None: ...


def measured(
    program: Program, monkeypatch: pytest.MonkeyPatch, said: list[Progress] | None = None, steps: int | None = 300
) -> SearchResult:
    monkeypatch.setattr(measuring, "RunningCommand", program)
    start: Any = Start(command=["python"], environ={}, folder=Path(), log=None)  # type: ignore[arg-type]
    wanted = Wanted(candidates=CANDIDATES, facts=facts_of(), steps=steps)
    return measuring.measure(
        start, wanted, host=Host(), told=TuneProgress(tell=(said if said is not None else []).append)
    )


def test_each_combination_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program()
    found = measured(program, monkeypatch)
    before = [block for block, order in pairwise(program.orders) if isinstance(order, TraceSteps)]
    traced = [str(block.values) for block in before if isinstance(block, TimeBlock)]
    assert len(traced) == len(set(traced))
    assert set(traced) == {str(order.values) for order in program.orders if isinstance(order, TimeBlock)}
    assert {arm.device_seconds for arm in found.tried + found.arms} == {SECONDS}


def test_without_a_gpu_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program("cpu")
    found = measured(program, monkeypatch)
    assert {type(order) for order in program.orders} == {TimeBlock}
    assert {arm.device_seconds for arm in found.tried + found.arms} == {None}


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (RunFailed(how="ended", detail="killed by signal 11"), "it ended (killed by signal 11)"),
        (RunFailed(how="silent", rank=1, detail="60 s"), "rank 1 took no step for 60 s"),
    ],
)
def test_a_program_that_fails_while_it_is_traced_starts_again_without_traces(
    failure: RunFailed, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, said = Program(ends=lambda order: isinstance(order, TraceSteps), failure=failure), []
    found = measured(program, monkeypatch, said)
    assert program.starts == 2
    assert found.failed == {}
    assert f"{words} while it was traced; starting again without traces" in [one.part for one in said]


def test_what_ends_it_without_a_trace_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(ends=lambda order: "fused_optimizer" in getattr(order, "values", {}))
    found = measured(program, monkeypatch)
    assert found.failed == {"fused_optimizer": "it ended (killed by signal 11)"}
    assert program.starts == 2


def test_a_program_that_always_ends_gives_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed, match="too few to tell"):
        measured(Program(ends=lambda order: True), monkeypatch)


class Ending(Program):
    """It has so many steps in each start; `trains` of them or of calls without gradients."""

    def __init__(self, steps: int, *, trains: bool = True, may_train: bool = False) -> None:
        super().__init__("cpu")
        self.steps, self.found, self.may_train = steps, replace(FOUND, trains=trains), may_train
        self.made = 0

    def __call__(self, *inputs: Any) -> Self:
        self.made = 0
        self.known = inputs[0].trains
        return super().__call__()

    def first(self, answer: type[Found]) -> Found:
        return replace(self.found, trains=True) if self.known else self.found

    def ask(self, seconds: float, order: Order[Any]) -> Any:
        steps = order.steps + order.settle if isinstance(order, TimeBlock) else 0
        self.made += steps
        if self.made > self.steps:
            raise RunFailed(how="over", steps=self.steps, may_train=self.may_train)
        return super().ask(seconds, order)


@pytest.mark.parametrize(("trains", "what"), [(True, "training steps"), (False, "calls without gradients")])
def test_a_program_that_is_too_short_is_told_at_its_first_end(
    trains: bool, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Ending(30, trains=trains)
    with pytest.raises(RunFailed, match=rf"it made 30 {what}, and some \d+0 are needed") as failed:
        measured(program, monkeypatch)
    assert failed.value.how == "short"
    assert program.starts == 1


def test_the_needed_steps_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed) as failed:
        measured(Ending(30), monkeypatch)
    needed = int(str(failed.value).split()[-3])
    program = Ending(needed)
    found = measured(program, monkeypatch, steps=None)
    assert found.arms
    assert program.made <= needed


def test_what_may_train_after_its_evaluation_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Ending(30, trains=False, may_train=True)
    with pytest.raises(RunFailed, match="it made 30 training steps"):
        measured(program, monkeypatch)
    assert program.starts == 2


@pytest.mark.parametrize("how", ["late", "stopped"])
def test_no_start_follows_where_none_would_help(how: How, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(ends=lambda order: "fused_optimizer" in getattr(order, "values", {}), failure=RunFailed(how=how))
    with pytest.raises(RunFailed) as failed:
        measured(program, monkeypatch)
    assert (failed.value.how, program.starts) == (how, 1)


@pytest.mark.parametrize(
    ("free", "detail"),
    [
        (1 << 40, "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 10944 vs 10838"),
        (1 << 40, "OSError: [Errno 28] No space left on device"),
        (0, "sqlite3.OperationalError: database or disk is full"),
    ],
)
def test_no_setting_is_blamed_for_a_folder_without_room(
    free: int, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = RunFailed(how="raised", detail=detail)
    program = Program(ends=lambda order: "fused_optimizer" in getattr(order, "values", {}), failure=failure)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(RunFailed, match="it found no room for what it writes") as failed:
        measured(program, monkeypatch)
    assert (failed.value.how, program.starts) == ("no room", 1)


FAILURE = RunFailed(how="raised", detail="RuntimeError: no")
TF32, FUSED = Combination.of({"matmul_precision": "tf32"}), Combination.of({"fused_optimizer": True})
BOTH = TF32.plus("fused_optimizer", True)
FOUR, EIGHT = DEFAULT.plus("dataloader_workers", 4), DEFAULT.plus("dataloader_workers", 8)


@pytest.mark.parametrize(
    ("worked", "failed", "without", "left_out", "most_workers"),
    [
        ({DEFAULT, TF32}, BOTH, {"fused_optimizer"}, set(), None),
        ({TF32, FUSED}, BOTH, set(), {BOTH}, None),
        ({DEFAULT, FOUR}, EIGHT, set(), set(), 7),
        ({DEFAULT, FOUR}, FOUR.plus("compile", True), {"compile"}, set(), None),
    ],
    ids=["never worked", "worked apart", "fewer workers may work", "workers that worked are not to blame"],
)
def test_what_is_to_blame(
    worked: set[Combination],
    failed: Combination,
    without: set[str],
    left_out: set[Combination],
    most_workers: int | None,
) -> None:
    attempts = Attempts(worked=worked)
    attempts.blame(failed, FAILURE)
    assert (attempts.without, attempts.left_out, attempts.most_workers) == (without, left_out, most_workers)
    assert attempts.failed == {str(failed): "it raised RuntimeError: no"}
