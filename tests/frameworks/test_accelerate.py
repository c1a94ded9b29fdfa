"""Accelerate's real Accelerator with the arguments of a profile."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from frameworks.everything import EVERYTHING, FLAGS
from torch import nn

from gputune.integrations.accelerate import VARIABLE, accelerator_kwargs
from gputune.runtime.tuning import Tuning

pytestmark = pytest.mark.frameworks


@pytest.fixture(scope="module", autouse=True)
def accelerate() -> Any:
    return importlib.import_module("accelerate")


class TestArguments:
    @pytest.mark.parametrize(
        ("dtype", "given"),
        [(None, {}), ("bfloat16", {"mixed_precision": "bf16"}), ("float16", {"mixed_precision": "fp16"})],
    )
    def test_mixed_precision(self, accelerate: Any, dtype: str | None, given: dict[str, Any]) -> None:
        assert accelerator_kwargs(Tuning({"amp_dtype": dtype})) == given
        assert accelerate.Accelerator(cpu=True, **given).mixed_precision == given.get("mixed_precision", "no")

    @pytest.mark.parametrize(("asked", "holds"), [("fp16", "fp16"), ("no", "bf16"), ("", "bf16")])
    def test_what_the_user_asked_accelerate_launch_for_stays(
        self, monkeypatch: pytest.MonkeyPatch, accelerate: Any, asked: str, holds: str
    ) -> None:
        monkeypatch.setenv(VARIABLE, asked)
        given = accelerator_kwargs(Tuning({"amp_dtype": "bfloat16"}))
        assert accelerate.Accelerator(cpu=True, **given).mixed_precision == holds


class TestAccelerator:
    def test_in_bfloat16_it_trains_compiled_with_workers_and_the_flags_stay(
        self, accelerate: Any, applied: Callable[..., Tuning], flags: Any, graphs: list[Any]
    ) -> None:
        tuning = applied(**EVERYTHING)
        before, dtypes, losses = flags(), set(), []
        model = tuning.prepare(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
        model[0].register_forward_hook(lambda layer, inputs, out: dtypes.add(out.dtype))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, **tuning.optimizer_kwargs())
        data = [torch.ones(8)] * 16
        loader = torch.utils.data.DataLoader(data, batch_size=4, **tuning.dataloader_kwargs(data))
        accelerator = accelerate.Accelerator(cpu=True, **accelerator_kwargs(tuning))
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        assert (loader.num_workers, loader.prefetch_factor) == (1, 4)
        for batch in loader:
            loss = (model(batch) - 10).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        assert losses == sorted(losses, reverse=True)
        assert len(losses) == 4
        assert graphs
        assert dtypes == {torch.bfloat16}
        assert list(accelerator.get_state_dict(model)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
        assert flags() == before == FLAGS

    def test_without_choices_it_is_accelerates_default(
        self, accelerate: Any, applied: Callable[..., Tuning], flags: Any
    ) -> None:
        tuning, before = applied(), flags()
        assert accelerate.Accelerator(cpu=True, **accelerator_kwargs(tuning)).mixed_precision == "no"
        assert flags() == before
