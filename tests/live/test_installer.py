"""Settings switched back and forth between the steps of a model that trains."""

import gc
import os
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hands_on import LateError, alarm, convnet, mlp, ring, rooted

from gputune.knobs import fused_optimizer, load
from gputune.live.installer import Installer
from gputune.live.root import Root

HALVES = torch.zeros(1, dtype=torch.bfloat16)
IMAGES = torch.ones(2, 3, 8, 8)
ALL: dict[str, Any] = {"amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True}


class Training:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = convnet()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.root = rooted(self.model, self.optimizer)
        self.root.in_turn = True
        self.installer = Installer([self.root])

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = self.model(IMAGES).square().mean()
        loss.backward()
        self.optimizer.step()
        return float(loss)

    def state(self) -> tuple[Any, ...]:
        call, group = self.root.call, self.optimizer.param_groups[0]
        weight = next(one for one in self.model.parameters() if one.dim() == 4)
        steps = {one["step"].device.type for one in self.optimizer.state.values()}
        return call.dtype, bool(group["fused"]), weight.is_contiguous(), steps


@pytest.fixture
def training() -> Training:
    made = Training()
    made.step()
    assert made.installer.obstacles(ALL) == {}
    return made


def test_a_flag_there_and_back_without_a_question_before() -> None:
    own, installer = torch.backends.cudnn.benchmark, Installer()
    for values in ({"cudnn_benchmark": not own}, {}, {"cudnn_benchmark": not own}, {}):
        installer.switch(values)
        assert torch.backends.cudnn.benchmark is values.get("cudnn_benchmark", own)


def test_threads_there_and_back(training: Training) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    own = torch.get_num_threads()
    try:
        assert training.installer.obstacles({"omp_threads": own + 1}) == {}
        for _ in range(2):
            training.installer.switch({"omp_threads": own + 1})
            assert torch.get_num_threads() == own + 1
            training.installer.switch({})
            assert torch.get_num_threads() == own
    finally:
        torch.set_num_threads(before)


def test_there_and_back(training: Training) -> None:
    before = training.state()
    for _ in range(3):
        training.installer.switch(ALL)
        training.step()
        assert training.state() == (torch.bfloat16, True, False, {"cpu"})
        training.installer.switch({})
        training.step()
        assert training.state() == before


def test_from_one_to_another(training: Training) -> None:
    training.installer.switch({"amp_dtype": "bfloat16"})
    training.installer.switch({"fused_optimizer": True})
    training.step()
    assert training.state()[:2] == (None, True)


def test_switching_changes_no_step(training: Training) -> None:
    other = Training()
    other.step()
    for values in ({"fused_optimizer": True}, {}, {"channels_last": True}, {}):
        training.installer.switch(values)
        assert training.step() == pytest.approx(other.step(), rel=1e-4)


def test_a_checkpoint_that_is_loaded_meanwhile_stays_unfused(training: Training) -> None:
    training.installer.switch({"fused_optimizer": True})
    training.installer.switch({})
    training.optimizer.load_state_dict(training.optimizer.state_dict())
    assert training.state()[1] is False


def test_flags_go_back_to_torchs_defaults(training: Training) -> None:
    setting = load("matmul_precision")
    assert training.installer.obstacles({"matmul_precision": "tf32"}) == {}
    training.installer.switch({"matmul_precision": "tf32"})
    assert setting.current() == "tf32"
    training.installer.switch({})
    assert setting.current() == "ieee"


def test_what_does_not_concern_a_model_is_said() -> None:
    rows = Installer([rooted(mlp())]).obstacles({"channels_last": True, "fused_optimizer": True})
    assert rows["channels_last"].why == "it has no 2-d convolutions"
    assert rows["fused_optimizer"].why == "no optimizer of torch's has trained it so far"


def wrong_dtype() -> Any:
    return torch.zeros(1).index_put((torch.arange(1),), torch.zeros(1, dtype=torch.bfloat16))


def out_of_memory() -> None:
    raise torch.cuda.OutOfMemoryError("CUDA out of memory")


def test_an_exception_is_told_if_it_may_be_a_settings_and_does_not_come_without(
    training: Training,
) -> None:
    told: list[Exception] = []
    training.installer.watch(told.append)

    def call_in(values: Any, raises: Callable[[], Any]) -> list[Exception]:
        told.clear()
        training.installer.switch(values)
        with training.model.register_forward_hook(lambda *_: raises()), pytest.raises(RuntimeError):
            training.model(IMAGES)
        return told

    def own() -> None:
        raise RuntimeError("short batch")

    half = {"amp_dtype": "bfloat16"}
    assert call_in({}, wrong_dtype) == call_in(half, wrong_dtype) == []
    assert call_in(half, own) == []
    assert len(call_in(half, lambda: torch.zeros(1).index_put((torch.arange(1),), HALVES))) == 1
    assert len(call_in(half, out_of_memory)) == 1


def deleted(values: dict[str, Any], *, guarded: bool) -> tuple[Installer, bool]:
    """What turned settings on in a model that the program then deletes, and whether it is freed at once."""
    training = Training()
    training.step()
    model, optimizer = training.model, training.optimizer
    root = Root(model=model, seen=training.root.seen, device="cpu", optimizers=[optimizer])
    installer, gone = Installer([root], guarded=guarded), weakref.ref(model)
    assert installer.obstacles(values) == {}
    installer.switch(values)
    training.step()
    gc.disable()
    try:
        del training, model, optimizer
        return installer, gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("values", [ALL, {"channels_last": True}, {"amp_dtype": "bfloat16"}, {"fused_optimizer": True}])
def test_a_model_with_settings_is_freed_at_once(values: dict[str, Any]) -> None:
    installer, is_freed = deleted(values, guarded=True)
    assert is_freed
    assert installer.switch({}) == {}


def test_a_model_that_is_measured_is_kept() -> None:
    installer, is_freed = deleted(ALL, guarded=False)
    assert not is_freed
    assert {row.status for row in installer.switch({"channels_last": True}).values()} <= {"applied"}
    assert installer.roots[0].model[0].weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("guarded", [False, True])
def test_what_a_signal_handler_raises_reaches_the_program_and_nothing_stays_on(
    training: Training, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    before, plain = training.state(), torch.get_float32_matmul_precision()
    installer = Installer([training.root], guarded=guarded)
    assert installer.obstacles(ALL) == {}
    monkeypatch.setattr(fused_optimizer, "_fuse", ring)
    with alarm(), pytest.raises(LateError):
        installer.switch({**ALL, "matmul_precision": "high"})
    assert (training.state(), installer.current) == (before, {})
    assert torch.get_float32_matmul_precision() == plain
    monkeypatch.undo()
    installer.switch(ALL)
    assert training.state() == (torch.bfloat16, True, False, {"cpu"})


def test_so_it_does_where_it_was_looked_for_an_obstacle(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_optimizer, "obstacle", ring)
    with alarm(), pytest.raises(LateError):
        Installer([training.root], guarded=True).obstacles(ALL)
