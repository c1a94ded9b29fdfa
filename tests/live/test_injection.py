"""Programs that know nothing of gputune, into whose models something is put after their first steps."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from hands_on import LateError, alarm, convnet, mlp, ring, unfollowed
from torch import nn

from gputune.knobs._called import PLACE
from gputune.live import injection
from gputune.live.advice import Advice, Loading, TunedProgram
from gputune.live.applied import Applied
from gputune.live.finding import PATIENCE
from gputune.live.injection import BRIEF, MOST_MODELS, Injection
from gputune.live.iterations import SILENT
from gputune.live.models import key, layers_of

HALF = torch.bfloat16
BOTH = {"amp_dtype": "bfloat16", "fused_optimizer": True}
IMAGES = torch.ones(2, 3, 8, 8)
X = torch.ones(2, 4)


class Session:
    def __init__(self, advice: Advice) -> None:
        self.said: list[str] = []
        self.flags: dict[str, Any] = {}
        self.injection = Injection(advice, self.set_flag, self.said.append)
        self.injection.start()

    def set_flag(self, name: str, value: Any) -> Applied:
        self.flags[name] = value
        return Applied(setting=name, after=value, status="applied", source="profile", reasons=("in this process",))

    def became(self, name: str) -> tuple[str, str]:
        row = self.injection.rows[name]
        return row.status, row.why


Start = Callable[..., Session]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.delenv("RANK", raising=False)

    def start(general: Any = None, **more: Any) -> Session:
        return Session(Advice(device="cpu", general=BOTH if general is None else general, **more))

    with unfollowed():
        yield start


def sgd(*models: Any) -> Any:
    return torch.optim.SGD([one for model in models for one in model.parameters()], lr=0.01)


def step(optimizer: Any, *models: Any, x: Any = None) -> None:
    optimizer.zero_grad()
    for model in models:
        given = IMAGES if any(isinstance(one, nn.Conv2d) for one in model.modules()) else X
        model(given if x is None else x).square().mean().backward()
    optimizer.step()


def trained(*models: Any, steps: int = 2) -> Any:
    optimizer = sgd(*models)
    for _ in range(steps):
        step(optimizer, *models)
    return optimizer


def call_of(model: Any) -> Any:
    return vars(model).get(PLACE)


def is_mixed(model: Any) -> bool:
    return getattr(call_of(model), "dtype", None) == HALF


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([mlp(), mlp()])

    def forward(self, x: Any) -> Any:
        return tuple(head(x) for head in self.heads)


class TrainsWithin(TwoHeads):
    def forward(self, x: Any) -> Any:
        self.optimizer = getattr(self, "optimizer", None) or sgd(self.heads[0])
        step(self.optimizer, self.heads[0])
        return self.heads[1](x)


class Puts(nn.Module):
    """Its call raises in half precision."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.zeros(2, 4).index_put((torch.arange(2),), self.layer(x))


class TestWhen:
    def test_after_the_second_step_of_the_first_optimizer(self, start: Start) -> None:
        before, session, model = nn.Module.__call__, start(), mlp()
        optimizer = sgd(model)
        step(optimizer, model)
        assert (is_mixed(model), session.said) == (False, [])
        step(optimizer, model)
        assert is_mixed(model)
        assert nn.Module.__call__ is before
        assert optimizer.param_groups[0]["fused"]
        assert session.said == ["put into Sequential (mlp): amp_dtype bfloat16, fused_optimizer"]
        step(optimizer, model)
        assert len(session.said) == 1

    def test_what_a_net_calls_again_is_no_call_of_the_programs(self, start: Start) -> None:
        session, critic, generator = start(), mlp(), mlp()
        often, seldom = sgd(critic), sgd(generator)
        for _ in range(4):  # the critic's results are compared while the generator is looked at
            step(often, critic)
            step(often, critic)
            step(seldom, generator)
        assert is_mixed(generator)
        assert [line for line in session.said if "Linear" in line] == []

    @pytest.mark.parametrize("are_brief", [True, False])
    def test_not_in_a_loop_that_makes_one_model_after_another_and_hardly_trains_them(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, are_brief: bool
    ) -> None:
        monkeypatch.setattr(injection, "BRIEF", BRIEF if are_brief else 0.0)
        session, models = start(), [mlp() for _ in range(MOST_MODELS + 1)]
        for model in models:
            trained(model)
        assert [is_mixed(model) for model in models] == [True] * MOST_MODELS + [not are_brief]
        assert any(line.startswith("nothing is put into further models: 32 came") for line in session.said) is are_brief

    def test_a_model_of_a_later_optimizer_gets_its_own(self, start: Start) -> None:
        session, first, later = start(), mlp(), mlp()
        one = trained(first)
        two = sgd(later)
        for _ in range(2):
            step(one, first)
            step(two, later)
        assert is_mixed(later), session.became("amp_dtype")
        assert session.became("amp_dtype") == ("applied", "put into Sequential")

    def test_copies_of_a_model_are_told_in_one_line(self, start: Start) -> None:
        session, model = start(), mlp()
        for _ in range(3):
            trained(copy.deepcopy(model))
        assert session.said == ["put into Sequential (mlp): amp_dtype bfloat16, fused_optimizer"]

    def test_what_is_said_of_later_models_is_theirs_alone(self, start: Start) -> None:
        class Other(nn.Sequential):
            pass

        session, other = start({"amp_dtype": "bfloat16"}), Other(nn.Linear(4, 4).double())
        trained(mlp())
        optimizer = sgd(other)
        for _ in range(2):
            step(optimizer, other, x=X.double())
        assert session.said[1].startswith("nothing put into Other (mlp); left: amp_dtype (")
        trained(convnet())
        assert session.said[2] == "put into Sequential (convnet): amp_dtype bfloat16"

    def test_of_models_that_step_together_those_are_named_that_a_setting_is_not_put_into(self, start: Start) -> None:
        class Other(nn.Sequential):
            def forward(self, x: Any) -> Any:
                return super().forward(x.double()).float()

        session, other = start({"amp_dtype": "bfloat16"}), Other(nn.Linear(4, 4).double())
        trained(mlp(), other)
        assert ": amp_dtype bfloat16 (not into Other: its parameters are float64)" in session.said[0]

    def test_a_later_optimizer_of_the_same_model_changes_nothing_of_the_model(self, start: Start) -> None:
        session, model = start(), mlp()
        trained(model)
        call = call_of(model)
        trained(model)
        assert call_of(model) is call
        assert session.became("amp_dtype")[0] == "applied"

    def test_what_no_optimizer_trains_may_be_a_loss_and_is_in_mixed_precision_only_once_one_does(
        self, start: Start
    ) -> None:
        session, model, frozen = start({"amp_dtype": "bfloat16"}), mlp(), mlp()
        optimizer = sgd(model)
        for _ in range(2):
            step(optimizer, model, frozen)
        assert (is_mixed(model), is_mixed(frozen)) == (True, False)
        assert "not into another Sequential: no optimizer of torch's has trained it" in session.became("amp_dtype")[1]
        later = sgd(frozen)
        for _ in range(2):
            step(later, frozen)
        assert is_mixed(frozen)
        assert session.became("amp_dtype") == ("applied", "put into Sequential")

    @pytest.mark.slow
    def test_a_model_that_only_compiling_is_for_is_not_compiled_anew_for_a_later_optimizer(self, start: Start) -> None:
        start({"compile": True})
        model, frozen = mlp(), mlp()
        optimizer, later = sgd(model), sgd(frozen)
        for _ in range(2):
            step(optimizer, model, frozen)
        compiled = call_of(frozen).compiled
        for _ in range(2):
            step(later, frozen)
        assert call_of(frozen).compiled is compiled is not None

    def test_an_optimizer_that_is_gone_is_not_waited_for(self, start: Start) -> None:
        start()
        model, other = mlp(), mlp()
        trained(model, steps=1)
        trained(other, steps=3)
        assert is_mixed(other)

    def test_where_optimizers_take_turns_the_whole_of_an_iteration_is_looked_at(self, start: Start) -> None:
        session, model = start({"compile": True}), TwoHeads()
        optimizers = [sgd(one) for one in model.heads]
        for _ in range(2):
            for output, optimizer in zip(model(X), optimizers, strict=True):
                output.sum().backward()
                optimizer.step()
        why = "the program runs backward passes through its outputs one by one"
        assert session.became("compile") == ("skipped", why)

    def test_what_is_inside_a_model_whose_forward_steps_an_optimizer_is_left(self, start: Start) -> None:
        session, model = start({"compile": True, **BOTH}), TrainsWithin()
        optimizer = sgd(model)
        for _ in range(2):
            step(optimizer, model)
        assert session.became("amp_dtype")[0] == "skipped"
        assert [call_of(one) for one in model.heads] == [None, None]


class TestWhat:
    def test_each_kind_of_model_gets_its_own_values(self, start: Start) -> None:
        session = start(families={"convnet": {"channels_last": True}, "mlp": {}})
        images, plain, other = convnet(), mlp(), nn.Sequential(nn.Linear(4, 4), nn.Bilinear(1, 1, 1).requires_grad_())
        other.forward = other[0].forward
        trained(images, plain, other)
        assert [is_mixed(one) for one in (images, plain, other)] == [False, False, True]
        assert images[0].weight.is_contiguous(memory_format=torch.channels_last)
        assert "put into Sequential (convnet), Sequential (mlp), Sequential: " in session.said[0]

    def test_settings_are_named_in_the_order_of_their_names(self, start: Start) -> None:
        session = start({"fused_optimizer": True, "channels_last": True, "amp_dtype": "bfloat16"})
        trained(convnet())
        assert session.said == ["put into Sequential (convnet): amp_dtype bfloat16, channels_last, fused_optimizer"]

    def test_where_nothing_gains_it_is_said(self, start: Start) -> None:
        session, model = start({}, families={"mlp": {}}), mlp()
        trained(model)
        assert session.said == ["nothing put into Sequential (mlp): the profile has nothing for it here"]
        assert call_of(model) is None

    def test_only_the_optimizers_of_the_model(self, start: Start) -> None:
        start({"fused_optimizer": True})
        model, unrelated = mlp(), torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
        optimizer = trained(model)
        assert optimizer.param_groups[0]["fused"]
        assert not unrelated.param_groups[0]["fused"]


def program(*models: Any, trains: bool = True, **values: Any) -> TunedProgram:
    return TunedProgram(
        entry="train.py", models=tuple(key(one).identity for one in models), settings=values, trains=trains,
        layers=tuple(layers_of(one) for one in models),
    )  # fmt: skip


class TestTuned:
    def test_a_program_is_known_by_its_models_and_gets_what_was_tuned_for_it(self, start: Start) -> None:
        model = mlp()
        tuned = program(model, amp_dtype="bfloat16", cudnn_benchmark=True, sdpa_backend=None)
        session = start({"fused_optimizer": True}, programs=(tuned,))
        optimizer = trained(model)
        assert is_mixed(model)
        assert session.flags == {"cudnn_benchmark": True, "sdpa_backend": None}
        assert not optimizer.param_groups[0]["fused"]
        assert session.became("cudnn_benchmark") == ("applied", "in this process")

    @pytest.mark.slow
    def test_its_other_models_are_left(self, start: Start) -> None:
        model, other = mlp(), convnet()
        start(programs=(program(model, amp_dtype="bfloat16"),))
        trained(model, other)
        assert (is_mixed(model), is_mixed(other)) == (True, False)

    @pytest.mark.slow
    def test_of_several_the_one_with_most_models_is_taken(self, start: Start) -> None:
        model, other = mlp(), convnet()
        one, both = program(model, amp_dtype="bfloat16"), program(model, other, fused_optimizer=True)
        start(programs=(one, both))
        optimizer = trained(model, other)
        assert optimizer.param_groups[0]["fused"]
        assert not is_mixed(model)

    @pytest.mark.parametrize("general", [{}, {"fused_optimizer": True}])
    def test_another_program_gets_nothing_of_it_and_hears_once_of_a_similar_model(
        self, start: Start, general: dict[str, Any]
    ) -> None:
        wider = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        model, tuned = mlp(), program(wider, amp_dtype="bfloat16", cudnn_benchmark=True)
        session = start(general, programs=(tuned,), profile="profile.yaml")
        trained(model)
        trained(mlp())
        assert (call_of(model), session.flags) == (None, {})
        assert [one for one in session.said if "profile.yaml" in one] == [
            "profile.yaml has a program tuned for another model (Sequential: 2 layers differ); "
            "tune this one: gputune tune -- CMD"
        ]
        if not general:
            assert session.became("amp_dtype") == ("skipped", "tuned for other models than this program's")

    @pytest.mark.parametrize("quiet", [True, False])
    def test_another_program_without_a_similar_model_hears_nothing(self, start: Start, quiet: bool) -> None:
        class Net(nn.Sequential): ...

        model = mlp() if quiet else Net(nn.Linear(4, 4))
        session = start({}, programs=(program(convnet(), amp_dtype="bfloat16"),), quiet=quiet)
        trained(model)
        assert session.said == []

    def test_what_depends_on_torch_is_left_where_it_was_tuned_with_another(self, start: Start) -> None:
        model = mlp()
        tuned = replace(program(model, amp_dtype="bfloat16", fused_optimizer=True), torch="2.3.9")
        session = start({}, programs=(tuned,))
        optimizer = trained(model)
        assert is_mixed(model)
        assert not optimizer.param_groups[0].get("fused")
        why = f"measured with torch 2.3.9, but this is torch {torch.__version__}"
        assert session.became("fused_optimizer") == ("skipped", why)

    def test_workers_of_a_program_that_asks_no_dataloader_are_named(self, start: Start) -> None:
        model = mlp()
        session = start({}, programs=(replace(program(model), loading=Loading(choices={"dataloader_workers": 2})),))
        trained(model)
        left = "left: dataloader_workers (no DataLoader was asked for a batch)"
        assert session.said == [f"nothing put into Sequential (mlp); {left}"]

    def test_another_program_gets_what_is_for_its_kind_where_that_was_asked_for(self, start: Start) -> None:
        model = mlp()
        start(BOTH, programs=(program(convnet(), compile=True),))
        trained(model)
        assert is_mixed(model)

    @pytest.mark.parametrize(("ranks", "told"), [("1", False), ("4", True)])
    def test_another_number_of_ranks_is_told(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, ranks: str, told: bool
    ) -> None:
        monkeypatch.setenv("WORLD_SIZE", ranks)
        model = mlp()
        session = start(programs=(program(model, amp_dtype="bfloat16"),))
        trained(model)
        assert session.said[0].endswith("; tuned with 1 ranks, and these are 4") is told


def answering(*models: Any, **values: Any) -> TunedProgram:
    return program(*models, trains=False, **values)


class TestTrainsNothing:
    @pytest.fixture(autouse=True)
    def _no_optimizer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gputune.live.iterations.optimizer_made", lambda: False)

    def answered(self, *models: Any, times: int = SILENT + PATIENCE) -> Any:
        with torch.no_grad():
            for _ in range(times):
                output = [model(X) for model in models]
        return output[-1]

    def test_its_calls_get_what_was_tuned_for_them_and_others_do_not(self, start: Start) -> None:
        model = mlp()
        session = start({}, programs=(answering(model, amp_dtype="bfloat16", inference_mode=True),))
        self.answered(model, times=SILENT)
        assert call_of(model) is None
        output = self.answered(model, times=PATIENCE)
        assert session.said == ["put into Sequential (mlp): amp_dtype bfloat16, inference_mode"]
        assert is_mixed(model)
        assert (output.dtype, output.is_inference()) == (torch.float32, False)
        assert not torch.equal(output, model(X).detach())  # which has gradients, and so is in FP32

    @pytest.mark.parametrize("calls", [1, SILENT, SILENT + PATIENCE])
    @pytest.mark.parametrize("steps", [0, 3])
    def test_nothing_is_patched_after_its_calls_or_once_it_trains(self, start: Start, calls: int, steps: int) -> None:
        before, model = nn.Module.__call__, mlp()
        start({}, programs=(answering(model, amp_dtype="bfloat16"),))
        assert nn.Module.__call__ is not before
        self.answered(model, times=calls)
        trained(model, steps=steps)
        assert (nn.Module.__call__ is before) == (calls > SILENT or steps > 0)
        assert is_mixed(model) == (calls > SILENT and not steps)

    def test_a_call_that_fails_with_it_is_repeated_without(self, start: Start) -> None:
        class Refuses(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x: Any) -> Any:
                return torch.zeros(2, 4).index_put((torch.arange(2),), self.layer(x)) * 0 + x

        model = Refuses()
        session = start({}, programs=(answering(model, amp_dtype="bfloat16"),))
        assert self.answered(model, times=SILENT + PATIENCE + 3).equal(X)
        assert session.became("amp_dtype")[0] == "failed"

    def test_what_a_signal_handler_raises_meanwhile_reaches_the_program(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gputune.live.injection.found_roots", ring)
        model = mlp()
        session = start({}, programs=(answering(model, amp_dtype="bfloat16"),))
        with alarm(), pytest.raises(LateError):
            self.answered(model)
        self.answered(model)
        assert not is_mixed(model)
        assert session.said == []

    def test_what_was_tuned_for_training_is_not_for_it_nor_what_is_for_its_kind(self, start: Start) -> None:
        model = mlp()
        training = program(model, amp_dtype="bfloat16")
        session = start(programs=(training, answering(convnet(), compile=True)))
        self.answered(model)
        assert call_of(model) is None
        assert session.became("amp_dtype") == ("skipped", "tuned for other models than this program's")

    def test_where_its_calls_came_before_a_training_all_is_undone_and_what_is_for_that_goes_in(
        self, start: Start
    ) -> None:
        model = mlp()
        answers = answering(model, amp_dtype="bfloat16", inference_mode=True, cudnn_benchmark=True)
        session = start({"fused_optimizer": True}, programs=(answers,))
        self.answered(model)
        assert is_mixed(model)
        optimizer = trained(model)
        assert not is_mixed(model)
        assert "inference_mode" not in session.injection.rows
        assert session.flags["cudnn_benchmark"] is None  # what it was before
        assert optimizer.param_groups[0]["fused"]
        trained(model, steps=3)
        assert not self.answered(model, times=2).is_inference()

    @pytest.mark.slow
    def test_what_lasts_is_made_outside_of_the_programs_inference_mode(self, start: Start) -> None:
        model = convnet()
        start({}, programs=(answering(model, channels_last=True),))
        with torch.inference_mode():
            for _ in range(SILENT + PATIENCE):
                model(IMAGES)
        assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
        model(IMAGES).sum().backward()


class TestLeft:
    def test_what_the_program_does_itself(self, start: Start) -> None:
        session, model = start(), mlp()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=HALF):
                model(X).float().sum().backward()
            optimizer.step()
        rows = session.injection.rows
        assert {(row.status, row.source) for row in rows.values()} == {("kept-user", "program")}
        assert call_of(model) is None
        assert session.said == [
            "nothing put into Sequential (mlp); left: amp_dtype (the program uses autocast or half precision itself), "
            "fused_optimizer (the program gave foreach=True)"
        ]

    def test_an_older_torch(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch, "__version__", "2.3.1+cu121")
        session, model = start(), mlp()
        trained(model)
        assert session.became("amp_dtype") == ("skipped", "torch 2.3.1+cu121 is older than 2.4")
        assert not is_mixed(model)

    def test_a_hand_that_fails_leaves_the_others_to_work(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gputune.knobs.amp_dtype.turn_on", lambda root, value: 1 / 0)
        session, model = start(), mlp()
        optimizer = trained(model)
        assert session.became("amp_dtype") == ("failed", "ZeroDivisionError: division by zero")
        assert session.said[0] == "amp_dtype was not put into Sequential: ZeroDivisionError: division by zero"
        assert optimizer.param_groups[0]["fused"]

    def test_whatever_goes_wrong_the_program_goes_on(self, start: Start) -> None:
        model = mlp()
        session = start(programs=(program(model, cudnn_benchmark=True),))
        session.flags = None  # type: ignore[assignment]  # so that setting one raises
        trained(model, steps=3)
        assert session.said == [
            "nothing was put into the program: TypeError: 'NoneType' object does not support item assignment"
        ]

    @pytest.mark.parametrize("place", ["injection.found_roots", "finding.opaque", "finding.changed"])
    def test_what_a_signal_handler_raises_meanwhile_reaches_the_program(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        monkeypatch.setattr(f"gputune.live.{place}", ring)
        session, model = start(), mlp()
        optimizer = trained(model, steps=1)
        with alarm(), pytest.raises(LateError):
            step(optimizer, model)
        monkeypatch.undo()
        step(optimizer, model)
        assert is_mixed(model) == (place != "injection.found_roots")
        assert not any("Error" in line for line in session.said)

    def test_a_setting_whose_call_fails_is_taken_out_again_and_told(self, start: Start) -> None:
        session, model = start(), Puts()
        trained(model, steps=3)
        status, why = session.became("amp_dtype")
        assert status == "failed"
        assert why.startswith("its call failed with it: RuntimeError: Index put requires")
        assert session.said[-1] == f"amp_dtype turned off: {why}"

    def test_of_several_models_the_line_names_the_one(self, start: Start) -> None:
        session = start()
        trained(mlp(), Puts(), steps=3)
        assert session.said[-1].startswith("amp_dtype turned off in Puts: its call failed with it")
        assert session.became("fused_optimizer")[0] == "applied"

    def test_quiet_says_nothing_and_other_ranks_than_the_first_neither(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quiet = start(quiet=True)
        trained(mlp())
        assert quiet.said == []
        monkeypatch.setenv("RANK", "1")
        other = start()
        trained(mlp())
        assert (other.said, other.became("amp_dtype")[0]) == ([], "applied")


class TestAgain:
    def test_what_is_for_other_kinds_is_not_told(self, start: Start) -> None:
        session = start(families={"mlp": {"fused_optimizer": True}, "convnet": {"channels_last": True}})
        trained(mlp())
        assert session.said == ["put into Sequential (mlp): fused_optimizer"]
        assert set(session.injection.rows) == {"fused_optimizer"}

    def test_so_is_that_of_a_program_that_was_tuned(self, start: Start) -> None:
        model = mlp()
        start(programs=(program(model, fused_optimizer=True),))
        for _ in range(2):
            optimizer = torch.optim.AdamW(model.parameters())
            for _ in range(3):
                model(X).sum().backward()
                optimizer.step()
            assert optimizer.param_groups[0]["fused"] is True

    def test_without_a_model_one_line_says_so(self, start: Start) -> None:
        session, weight = start(), torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight])
        for _ in range(PATIENCE + 2):
            weight.sum().backward()
            optimizer.step()
        assert session.said == [
            "nothing was put into the program: "
            "no model that returned tensors was called with gradients between two optimizer steps"
        ]


class TestDistributed:
    def wrap(self, model: Any) -> Any:
        class DistributedDataParallel(nn.Module):
            def __init__(self, model: Any) -> None:
                super().__init__()
                self.module = model
                self.seen = [one.is_contiguous(memory_format=torch.channels_last) for one in model.parameters()]

            def forward(self, x: Any) -> Any:
                return self.module(x)

        return DistributedDataParallel(model)

    def test_the_model_is_converted_before_the_wrap_sees_it_and_the_wrap_is_guarded_from_its_first_call(
        self, start: Start
    ) -> None:
        session = start({"channels_last": True})
        wrap = self.wrap(convnet())
        assert wrap.seen[0]
        assert wrap(IMAGES).is_contiguous()
        assert [call_of(one) is not None for one in (wrap, wrap.module)] == [True, False]
        assert len(call_of(wrap).suspects.on) == 1
        assert session.said == []

    def test_a_model_whose_wraps_forward_is_called_has_it_as_well(self, start: Start) -> None:
        session = start({"channels_last": True})
        wrap = self.wrap(convnet())
        optimizer = torch.optim.SGD(wrap.parameters())
        for _ in range(3):
            output = wrap.forward(IMAGES)
            output.sum().backward()
            optimizer.step()
        assert output.is_contiguous()
        assert session.said[0].endswith("(convnet): channels_last")

    @pytest.mark.parametrize("function", ["obstacle", "turn_on"])
    def test_a_knob_that_fails_there_is_said(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, function: str
    ) -> None:
        monkeypatch.setattr(f"gputune.knobs.channels_last.{function}", lambda root, value: 1 / 0)
        session = start({"channels_last": True})
        assert self.wrap(convnet()).seen[0] is (function == "turn_on")
        assert session.said == ["channels_last was not put in: ZeroDivisionError: division by zero"]

    def test_not_where_it_does_not_pay_or_may_not_be(self, start: Start) -> None:
        start({"channels_last": True}, families={"convnet": {}})
        assert not self.wrap(convnet()).seen[0]
        start({"channels_last": True})
        assert not self.wrap(convnet().double()).seen[0]
