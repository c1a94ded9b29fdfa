"""Mixed precision, put into a model and taken out."""

from typing import Any

import pytest
import torch
from hands_on import mlp, rooted
from torch import nn

from gputune.knobs import amp_dtype
from gputune.live.root import Root


def trained(**more: Any) -> Root:
    model = mlp()
    return rooted(model, torch.optim.SGD(model.parameters()), **more)


def test_bfloat16_goes_in_and_out() -> None:
    root = trained()
    assert amp_dtype.obstacle(root, "bfloat16") is None
    assert amp_dtype.turn_on(root, "bfloat16") == "bfloat16"
    assert (root.call.dtype, root.call.cache) == (torch.bfloat16, True)
    amp_dtype.turn_off(root)
    assert root.call.dtype is None


def test_bfloat16_takes_the_place_of_float16_which_would_need_a_loss_scaler() -> None:
    root = rooted(mlp())
    assert amp_dtype.turn_on(root, "float16") == "bfloat16"


def test_reentrant_checkpointing_keeps_no_casts() -> None:
    root = trained(features={"backward within backward"})
    assert amp_dtype.obstacle(root, "bfloat16") is None
    amp_dtype.turn_on(root, "bfloat16")
    assert root.call.cache is False


class Adapts(nn.Module):
    """Its weight is another one for a part of the call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        first = self.layer(x)
        with torch.no_grad():
            self.layer.weight.mul_(0.5)
        second = self.layer(x)
        with torch.no_grad():
            self.layer.weight.mul_(2)
        return second - first.detach()


def test_a_weight_that_is_written_to_within_a_call_is_used_as_written() -> None:
    model, x = Adapts(), torch.ones(2, 4)
    expected = model(x)
    amp_dtype.turn_on(rooted(model, changes_weights=True), "bfloat16")
    assert torch.allclose(model(x), expected, atol=0.05)
    assert model(x).abs().max() > 0.1


def test_a_gpu_without_bfloat16_would_need_a_loss_scaler(monkeypatch: pytest.MonkeyPatch) -> None:
    root = trained(device="cuda")
    for supported in (True, False):
        monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation, supported=supported: supported)
        assert (amp_dtype.obstacle(root, "float16") is None) is supported


def test_steps_of_lbfgs_run_in_fp32_as_a_training_goes_on_with_them() -> None:
    model, x = nn.Linear(4, 4), torch.randn(8, 4)
    plain = model(x)
    amp_dtype.turn_on(rooted(model), "bfloat16")
    assert not torch.equal(model(x), plain)
    seen = []

    def closure() -> Any:
        seen.append(torch.equal(model(x), plain))
        return model(x).square().sum()

    torch.optim.LBFGS(model.parameters(), lr=0, max_iter=1).step(closure)
    assert set(seen) == {True}
    assert not torch.equal(model(x), plain)
