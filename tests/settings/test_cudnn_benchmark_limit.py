"""How many plans cuDNN's search times: torch's own number unless a profile names another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from recorded import facts_of

from gputune.settings import cudnn_benchmark_limit as setting


def test_a_profile_leaves_it_to_torch() -> None:
    choice = setting.recommend(facts_of(), [])
    assert (choice.value, choice.reason) == (None, "torch's default, 10 plans a shape; other limits are not measured")


@pytest.fixture
def cudnn(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """torch's flag as a build with cuDNN has it."""
    import torch

    stand_in = SimpleNamespace(benchmark_limit=10)
    monkeypatch.setattr(torch.backends, "cudnn", stand_in)
    return stand_in


@pytest.mark.parametrize("limit", [0, 1, 25])
def test_it_is_set_and_read_back(cudnn: SimpleNamespace, limit: int) -> None:
    assert setting.current() == setting.default() == 10
    setting.apply(limit)
    assert (setting.current(), cudnn.benchmark_limit, setting.default()) == (limit, limit, 10)


def test_a_torch_without_cudnn_has_none_to_set(cudnn: SimpleNamespace) -> None:
    cudnn.benchmark_limit = None
    assert (setting.current(), setting.default()) == (None, None)
    with pytest.raises(RuntimeError, match="built without cuDNN"):
        setting.apply(5)
