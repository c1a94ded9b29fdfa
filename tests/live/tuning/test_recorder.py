"""What a guard run records, and that the program does not notice."""

import copy
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hands_on import mlp, unfollowed
from torch import nn

from gputune.live.iterations import Iterations
from gputune.live.records import CHUNK, SAMPLE, SIZE, sketch
from gputune.live.tuning.recording import MOST_OUTPUTS, PATIENCE, Recorder, Shadow

STEP = "the optimizer's step was not compared"
SCALER = torch.amp.GradScaler("cpu", init_scale=1024.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with unfollowed():
        torch.manual_seed(0)
        yield


def recording(compared: int = 3) -> Recorder:
    recorder = Recorder(compared)
    Iterations(recorder.iteration_ended).start()
    recorder.start()
    return recorder


def train(model: Any, optimizer: Any, steps: int = 4, loss: Callable[[Any], Any] | None = None) -> list[float]:
    seen = []
    for step in range(steps):
        optimizer.zero_grad()
        found = model(torch.full((2, 4), 1.0 + step)).square().mean()
        found.backward() if loss is None else loss(found)
        optimizer.step()
        seen.append(float(found.detach()))
    return seen


def adam(model: Any, **more: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=0.01, **more)


class TestLosses:
    def test_one_an_iteration(self) -> None:
        recorder, model = recording(), mlp()
        seen = train(model, adam(model))
        plain = recorder.recorded()
        assert plain.losses == pytest.approx(seen)
        assert plain.compared == 3

    @pytest.mark.parametrize(
        ("backward", "factor"),
        [
            (lambda loss: torch.autograd.backward(loss, None), 1),
            (lambda loss: torch.autograd.backward(tensors=loss), 1),
            (lambda loss: torch.autograd.backward([loss]), 1),
            (lambda loss: loss.backward(retain_graph=True), 1),
            (lambda loss: loss.reshape(1).backward(), 1),
            (lambda loss: [(k * loss).backward(retain_graph=True) for k in (1, 3)], 2),  # the mean of several
            (lambda loss: [SCALER.scale(k * loss).backward(retain_graph=True) for k in (1, 3)], 2),
        ],
    )
    def test_by_any_call_as_they_were_before_a_scaler(self, backward: Any, factor: int) -> None:
        recorder, model = recording(), mlp()
        seen = train(model, adam(model), loss=backward)
        assert recorder.recorded().losses == pytest.approx([factor * one for one in seen])

    def test_checkpointing_inside_of_a_backward_pass_counts_once(self) -> None:
        from torch.utils.checkpoint import checkpoint

        recorder, model = recording(), mlp()
        optimizer = adam(model)
        x = torch.ones(2, 4, requires_grad=True)
        loss = checkpoint(model, x, use_reentrant=True).square().mean()
        loss.backward()
        optimizer.step()
        assert recorder.recorded().losses == pytest.approx([float(loss.detach())])

    def test_that_are_not_seen_or_no_numbers(self) -> None:
        recorder, model = recording(), mlp()
        optimizer = adam(model)
        for gradient in torch.autograd.grad(model(torch.ones(2, 4)).sum(), list(model.parameters())):
            assert gradient is not None
        train(model, optimizer, 1, loss=lambda loss: None)
        train(model, optimizer, 1, loss=lambda loss: (loss * math.nan).backward())
        losses = recorder.recorded().losses
        assert losses[0] is None
        assert math.isnan(losses[1])

    def test_stay_on_the_device_until_the_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        recording()
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.ones(2, 4)).square().mean()
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "item", None)
            patch.setattr(torch.Tensor, "__float__", None)
            loss.backward()
            optimizer.step()

    @pytest.mark.slow
    def test_a_compiled_backward_call_is_left_alone(self) -> None:
        recorder, model = recording(), mlp()
        optimizer = adam(model)

        forward = torch.compile(lambda x: model(x).square().mean(), backend="eager")
        for _ in range(3):
            forward(torch.ones(2, 4)).backward()
            optimizer.step()
        assert None not in recorder.recorded().losses


class TestGradients:
    def test_of_one_iteration_as_the_optimizer_gets_them(self) -> None:
        recorder, model = recording(), mlp()
        optimizer = adam(model)
        train(model, optimizer, 2)
        before = copy.deepcopy(model)
        train(model, optimizer, 2)
        before(torch.ones(2, 4)).square().mean().backward()
        found = recorder.recorded().gradients
        expected = [one.grad for one in before.parameters()]
        assert [one.norm for one in found] == pytest.approx([float(one.norm()) for one in expected], rel=1e-5)
        assert [one.sketch for one in found] == [
            pytest.approx(tuple(sketch(one)), rel=1e-4, abs=1e-9) for one in expected
        ]

    def test_sparse_and_complex_ones_too(self) -> None:
        recorder = recording(compared=1)
        table = nn.Embedding(10, 3, sparse=True)
        turn = nn.Parameter(torch.ones(2, dtype=torch.complex64))
        rows = table.weight.detach().clone()
        optimizer = torch.optim.SGD([*table.parameters(), turn], lr=0.1)
        (table(torch.tensor([1, 1, 4])).square().sum() + (turn * 2j).abs().sum()).backward()
        optimizer.step()
        norms = [one.norm for one in recorder.recorded().gradients]
        assert norms == pytest.approx([math.hypot(*(4 * rows[1]), *(2 * rows[4])), math.hypot(2, 2)])

    def test_two_optimizers_in_turn_are_compared_at_their_third_steps(self) -> None:
        recorder, one, two = recording(), mlp(), mlp()
        first, second = adam(one), torch.optim.SGD(two.parameters(), lr=0.1)
        for step in range(6):
            assert recorder.is_compared == (step == 2)
            train(one, first, 1)
            assert recorder.is_compared == (step == 2)
            train(two, second, 1)
        plain = recorder.recorded()
        assert plain.compared == 4
        assert len(plain.gradients) == len(plain.steps) == 8
        assert len(plain.losses) == 7

    def test_an_optimizer_that_does_not_step_again_is_not_waited_for(self) -> None:
        recorder, one, two = recording(), mlp(), mlp()
        first, second = adam(one), adam(two)
        train(one, first, 1)
        train(two, second, 1)
        for _ in range(PATIENCE + 2):
            train(one, first, 1)
            recorder.iteration_ended()
        assert recorder.recorded().compared == PATIENCE
        assert recorder.recorded().gradients

    def test_a_step_within_a_step_is_one(self) -> None:
        class Own(torch.optim.SGD):  # type: ignore[misc]
            def step(self, closure: Any = None) -> Any:
                return super().step(closure)

        torch.optim.SGD(mlp().parameters(), lr=0.1)  # which makes torch wrap the parent's step
        recorder, model = recording(), mlp()
        train(model, Own(model.parameters(), lr=0.1))
        plain = recorder.recorded()
        assert (plain.compared, len(plain.gradients), plain.unchecked) == (3, 4, (f"{STEP} (Own)",))


class Returns(nn.Module):  # type: ignore[misc]
    def __init__(self, does: Callable[[Any], Any]) -> None:
        super().__init__()
        self.net, self.does = mlp(), does

    def forward(self, x: Any) -> Any:
        self.found = self.net(x)
        return self.does(self.found)


def step(model: Any, optimizer: Any, x: Any = None) -> Any:
    optimizer.zero_grad()
    output = model(torch.ones(2, 4) if x is None else x)
    model.found.square().mean().backward()
    optimizer.step()
    return output


def returned(does: Callable[[Any], Any]) -> Any:
    """What is recorded of a model that returns this of its numbers."""
    recorder, model = recording(), Returns(does)
    optimizer = adam(model)
    for _ in range(4):
        step(model, optimizer)
    return recorder.recorded()


class TestOutputs:
    def test_of_one_iteration_as_the_program_gets_them(self) -> None:
        recorder, model = recording(), Returns(lambda y: (y, {"codes": y.argmax(-1), "mask": y > 0, "loss": y.mean()}))
        optimizer = adam(model)
        seen = [step(model, optimizer) for _ in range(4)][2]
        found = recorder.recorded().outputs
        names = ["[0]", "[1]['codes']", "[1]['mask']", "[1]['loss']"]
        assert [one.name for one in found] == [f"Returns's output{place}" for place in names]
        assert [one.is_whole for one in found] == [False, True, True, False]
        tensors = [seen[0], *seen[1].values()]
        for one, tensor in zip(found, tensors, strict=True):
            assert one.shape == tensor.shape
            assert one.sample == pytest.approx(tensor.detach().float().flatten().tolist(), rel=1e-5)
        assert found[1].total == float(tensors[1].sum())

    @pytest.mark.parametrize(
        ("does", "samples"),
        [
            (lambda y: y.shape[0], [(2.0,)]),
            (lambda y: [[3, 1, 2] * 20, 0.5, True], [(3.0, 1.0, 2.0) * 20, (0.5,), (1.0,)]),
            (lambda y: torch.complex(y[0, :1] * 0 + 1, y[0, :1] * 0 + 2), [(1.0, 2.0)]),
            (
                lambda y: torch.tensor([1.0, math.nan, -math.inf]),
                [(1.0, pytest.approx(math.nan, nan_ok=True), -math.inf)],
            ),
            (lambda y: y[:0], [()]),
            (lambda y: (None, "text"), []),
        ],
    )
    def test_of_any_numbers(self, does: Any, samples: list[Any]) -> None:
        plain = returned(does)
        assert [one.sample for one in plain.outputs] == samples
        assert plain.unchecked == ()

    def test_numbers_that_are_none_are_counted(self) -> None:
        assert returned(lambda y: torch.tensor([1.0, math.nan, -math.inf])).outputs[0].not_finite == 2

    def test_what_cannot_be_looked_into_is_said_and_the_rest_is_recorded(self) -> None:
        plain = returned(lambda y: (y, object()))
        assert len(plain.outputs) == 1
        assert plain.unchecked == ("an output of Returns was not compared (TypeError: it holds a object)",)

    def test_an_output_that_cannot_be_read_is_said_and_the_program_goes_on(self) -> None:
        plain = returned(lambda y: torch.eye(3).to_sparse())
        assert len(plain.losses) == 4
        assert [one.partition(" (")[0] for one in plain.unchecked] == ["an output of Returns was not compared"]

    def test_of_large_tensors_a_thousand_elements_at_the_same_places(self) -> None:
        numbers = torch.arange(100 * 1000)
        one, other = returned(lambda y: (numbers.view(100, 1000), numbers.view(1000, 100).float() * 2)).outputs
        assert len(set(one.sample)) == SAMPLE
        assert other.sample == pytest.approx([2 * place for place in one.sample], rel=1e-5)
        columns = {place % 1000 for place in one.sample}
        assert len(columns) > 0.5 * SAMPLE
        assert max(one.sample) > 99_000
        assert min(one.sample) < 1000

    def test_of_more_calls_than_are_recorded_the_first(self) -> None:
        recorder, model = recording(compared=1), Returns(lambda y: y)
        optimizer = adam(model)
        for _ in range(MOST_OUTPUTS + 5):
            model(torch.ones(2, 4))
        step(model, optimizer)
        plain = recorder.recorded()
        assert len(plain.outputs) == MOST_OUTPUTS
        assert plain.unchecked == (f"an output of Returns was not compared (it comes after {MOST_OUTPUTS} others)",)

    @pytest.mark.slow
    def test_what_torch_compile_makes_of_a_function_is_no_model(self) -> None:
        recorder, model = recording(), mlp()
        optimizer = adam(model)
        forward = torch.compile(lambda x: model(x).square().mean(), backend="aot_eager")
        for _ in range(4):
            forward(torch.ones(2, 4)).backward()
            optimizer.step()
        plain = recorder.recorded()
        assert (plain.outputs, plain.unchecked) == ((), ())
        assert None not in plain.losses

    def test_calls_without_gradients_are_recorded_too(self) -> None:
        recorder, model, teacher = recording(), Returns(lambda y: y), nn.Linear(4, 3)
        optimizer = adam(model)
        for _ in range(4):
            with torch.no_grad():
                teacher(torch.ones(2, 4))
            step(model, optimizer)
        plain = recorder.recorded()
        assert [one.name for one in plain.outputs] == ["Linear's output", "Returns's output"]

    def test_no_call_is_wrapped_but_in_the_compared_iteration_and_until_an_evaluation(self) -> None:
        plain = nn.Module.__call__
        recorder, model = recording(), Returns(lambda y: y)
        optimizer = adam(model)
        step(model, optimizer)
        wrapped = [nn.Module.__call__ is not plain]
        for number in range(5):
            step(model, optimizer)
            wrapped.append(nn.Module.__call__ is not plain)
            if number == 2:
                with torch.no_grad():
                    model(torch.ones(2, 4))
        assert wrapped == [False, True, True, True, False, False]
        assert recorder.recorded().evaluates

    @pytest.mark.parametrize(("at", "evaluates"), [(0, False), (2, True), (5, True), (None, False)])
    def test_an_evaluation_counts_once_settings_are_on(self, at: int | None, evaluates: bool) -> None:
        recorder, model = recording(), Returns(lambda y: y)
        optimizer = adam(model)
        for number in range(7):
            if number == at:
                with torch.inference_mode():
                    model(torch.ones(2, 4))
            step(model, optimizer)
        assert recorder.recorded().evaluates == evaluates


class TestSketch:
    @pytest.mark.parametrize("count", [1, 10, 1000, pytest.param(100_000, marks=pytest.mark.slow)])
    def test_a_norm_is_told_within_a_sixth_as_a_rule(self, count: int) -> None:
        ratios = []
        for _ in range(40):
            x = torch.randn(count)
            ratios.append(math.hypot(*sketch(x)) / float(x.norm()))
        assert sum(abs(one - 1) < 0.16 for one in ratios) >= 33
        assert sum(ratios) / 40 == pytest.approx(1, abs=0.05)

    def test_is_linear(self) -> None:
        x, y = torch.randn(2, 500)
        expected = [2 * one + other for one, other in zip(sketch(x), sketch(y), strict=True)]
        assert sketch(2 * x + y) == pytest.approx(expected, abs=1e-3)

    def test_is_the_same_in_any_layout_and_draws_nothing(self) -> None:
        state = torch.get_rng_state()
        x = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
        assert sketch(x) == sketch(x.contiguous(memory_format=torch.channels_last))
        assert torch.equal(state, torch.get_rng_state())

    def test_numbers_all_alike_do_not_add_up(self) -> None:
        x = torch.ones(1 << 16)
        assert math.hypot(*sketch(x)) / float(x.norm()) == pytest.approx(1, abs=0.3)

    @pytest.mark.slow
    def test_pieces_add_up(self) -> None:
        x = torch.randn(CHUNK + 777)
        whole, head = sketch(x), sketch(torch.cat([x[:CHUNK], torch.zeros(777)]))
        tail = sketch(torch.cat([torch.zeros(CHUNK), x[CHUNK:]]))
        assert whole == pytest.approx([a + b for a, b in zip(head, tail, strict=True)], abs=0.2)

    def test_thousands_fit_into_a_message(self) -> None:
        image = json.dumps([1.2345, 10, sketch(torch.randn(1000))])
        assert len(image) < 12 * SIZE


KINDS: dict[str, Callable[[Any], Any]] = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1),
    "maximized": lambda p: torch.optim.AdamW(p, lr=0.01, maximize=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "a tensor's rate": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01)),
    "groups": lambda p: torch.optim.AdamW([{"params": [one], "lr": 0.01 * place} for place, one in enumerate(p, 1)]),
}


class TestShadow:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_right_step_is_the_plain_one(self, kind: str) -> None:
        recorder, model = recording(), mlp()
        train(model, KINDS[kind](list(model.parameters())))
        plain = recorder.recorded()
        assert plain.unchecked == ()
        assert len(plain.steps) == 4
        for difference, update, before in plain.steps:
            assert difference <= 2**-22 * before + 1e-5 * update
            assert update > 0

    @pytest.mark.parametrize("kind", [torch.optim.RMSprop, torch.optim.NAdam])
    def test_of_another_class_is_not_known(self, kind: Any) -> None:
        recorder, model = recording(), mlp()
        train(model, kind(model.parameters()))
        assert (recorder.recorded().steps, recorder.recorded().unchecked) == ((), (f"{STEP} ({kind.__name__})",))

    def test_that_fails_is_not_known_and_the_program_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("out of\nmemory")

        recorder, model = recording(), mlp()
        monkeypatch.setattr(Shadow, "__init__", fail)
        assert len(train(model, adam(model))) == 4
        assert recorder.recorded().unchecked == (f"{STEP} (RuntimeError: out of memory)",)


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_does_not_notice(kind: str) -> None:
    def run() -> Any:
        torch.manual_seed(3)
        model = nn.Sequential(mlp(), nn.Dropout(0.5))
        optimizer = KINDS[kind](list(model.parameters()))
        losses = train(model, optimizer, 6)
        state = [value.clone() for one in optimizer.state.values() for value in one.values() if torch.is_tensor(value)]
        return losses, [*model.parameters(), *state], [one.grad for one in model.parameters()], torch.get_rng_state()

    expected = run()
    recording()
    found = run()
    assert found[0] == expected[0]
    for ours, theirs in zip(found[1:3], expected[1:3], strict=True):
        assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert torch.equal(found[3], expected[3])
