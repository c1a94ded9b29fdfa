"""Lightning's real Trainer with the arguments of a profile."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from frameworks.everything import EVERYTHING, FLAGS, NO_KNOB
from torch import nn

from gputune.integrations.accelerate import accelerator_kwargs
from gputune.integrations.lightning import VARIABLE, trainer_kwargs
from gputune.runtime.tuning import Tuning

pytestmark = pytest.mark.frameworks

Arguments = Callable[[Tuning], dict[str, Any]]

QUIET = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False}


@pytest.fixture(scope="module", autouse=True)
def lightning() -> Any:
    return importlib.import_module("lightning")


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


def module(lightning: Any, model: nn.Module, **optimizer_kwargs: Any) -> Any:
    """A LightningModule that keeps the dtypes of what the model gave, and the losses."""

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.dtypes, self.losses = model, set(), []

        def training_step(self, batch: Any, index: int) -> Any:
            out = self.model(batch)
            self.dtypes.add(out.dtype)
            loss = (out.float() - 10).square().mean()
            self.losses.append(float(loss.detach()))
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=0.01, **optimizer_kwargs)

    return Module()


class TestArguments:
    @pytest.mark.parametrize(
        ("dtype", "given"),
        [(None, {}), ("bfloat16", {"precision": "bf16-mixed"}), ("float16", {"precision": "16-mixed"})],
    )
    def test_mixed_precision(self, dtype: str | None, given: dict[str, Any]) -> None:
        assert trainer_kwargs(Tuning({"amp_dtype": dtype})) == given

    @pytest.mark.parametrize("arguments", [trainer_kwargs, accelerator_kwargs])
    @pytest.mark.parametrize("values", [{}, NO_KNOB])
    def test_what_it_has_no_knob_for_is_not_given(self, arguments: Arguments, values: dict[str, Any]) -> None:
        """Accelerate's Accelerator neither."""
        assert arguments(Tuning(values)) == {}

    @pytest.mark.parametrize("arguments", [trainer_kwargs, accelerator_kwargs])
    def test_after_prepare_it_is_the_kind_of_networks_own(self, arguments: Arguments) -> None:
        tuning = Tuning({"amp_dtype": "bfloat16"}, {"mlp": {"amp_dtype": None}})
        assert arguments(tuning) != {}
        tuning.prepare(network())
        assert arguments(tuning) == {}

    def test_the_users_variable_stays(self, monkeypatch: pytest.MonkeyPatch, lightning: Any) -> None:
        monkeypatch.setenv(VARIABLE, "64-true")
        trainer = lightning.Trainer(**trainer_kwargs(Tuning({"amp_dtype": "bfloat16"})), **QUIET)
        assert trainer.precision == "64-true"


class TestTrainer:
    def test_in_bfloat16_it_trains_compiled_with_workers_and_the_flags_stay(
        self, lightning: Any, applied: Callable[..., Tuning], flags: Any, graphs: list[Any], tmp_path: Path
    ) -> None:
        tuning = applied(**EVERYTHING)
        before = flags()
        data = [torch.ones(8)] * 16
        loader = torch.utils.data.DataLoader(data, batch_size=4, **tuning.dataloader_kwargs(data))
        module_ = module(lightning, tuning.prepare(network()), **tuning.optimizer_kwargs())
        trainer = lightning.Trainer(max_steps=4, default_root_dir=tmp_path, **trainer_kwargs(tuning), **QUIET)
        trainer.fit(module_, loader)
        assert (trainer.global_step, trainer.precision) == (4, "bf16-mixed")
        assert graphs
        assert module_.dtypes == {torch.bfloat16}
        assert module_.losses == sorted(module_.losses, reverse=True)
        assert flags() == before == FLAGS
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        names = torch.load(tmp_path / "last.ckpt", weights_only=True)["state_dict"]
        assert list(names) == ["model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"]

    def test_without_choices_it_is_lightnings_default(
        self, lightning: Any, applied: Callable[..., Tuning], flags: Any
    ) -> None:
        tuning, before = applied(), flags()
        trainer = lightning.Trainer(**trainer_kwargs(tuning), **QUIET)
        assert trainer.precision == lightning.Trainer(**QUIET).precision == "32-true"
        assert flags() == before

    def test_around_the_module_itself_nothing_would_be_compiled(self, lightning: Any, graphs: list[Any]) -> None:
        """As the integration's docstring says: Lightning calls the module's training_step."""
        module_ = Tuning({"compile": True}).prepare(module(lightning, network()))
        trainer = lightning.Trainer(max_steps=1, enable_checkpointing=False, **QUIET)
        trainer.fit(module_, torch.utils.data.DataLoader(torch.randn(4, 8)))
        assert graphs == []

    def test_a_fused_optimizer_and_clipping_exclude_each_other_in_mixed_precision(self, lightning: Any) -> None:
        """As the integration's docstring says: the limit is Lightning's."""
        tuning = Tuning({"amp_dtype": "bfloat16", "fused_optimizer": True})
        module_ = module(lightning, network(), **tuning.optimizer_kwargs())
        trainer = lightning.Trainer(
            max_steps=1, enable_checkpointing=False, gradient_clip_val=1.0, **trainer_kwargs(tuning), **QUIET
        )
        with pytest.raises(RuntimeError, match="Are you using a 'fused' optimizer"):
            trainer.fit(module_, torch.utils.data.DataLoader(torch.randn(4, 8)))
