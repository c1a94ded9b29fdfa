"""Which kind of network a model is."""

from typing import Any

import pytest
import torch
from torch import nn

from gputune.inject.models import family


class LlamaAttention(nn.Module):
    """As model libraries name theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(8, 8)


class Raw(nn.Module):
    """A matrix of its own, in no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.weight = nn.Parameter(torch.zeros(2, 2))


CASES: list[tuple[str | None, Any]] = [
    ("convnet", nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))),
    ("convnet", nn.Conv1d(3, 8, 3)),
    ("convnet", nn.Sequential(nn.Sequential(nn.Conv3d(3, 8, 3)))),
    ("convnet", nn.ConvTranspose2d(3, 8, 3)),
    ("convnet", nn.ModuleList([nn.Conv1d(3, 8, 3), nn.GRU(8, 8)])),
    ("transformer", nn.MultiheadAttention(8, 2)),
    ("transformer", nn.TransformerEncoderLayer(8, 2, 16)),
    ("transformer", nn.ModuleList([nn.Conv2d(3, 8, 16, 16), LlamaAttention()])),
    ("transformer", nn.ModuleList([nn.Embedding(8, 8), LlamaAttention(), nn.LSTM(8, 8)])),
    ("recurrent", nn.ModuleList([nn.Embedding(8, 8), nn.LSTM(8, 8), nn.Linear(8, 2)])),
    ("recurrent", nn.GRU(8, 8)),
    ("recurrent", nn.RNN(8, 8)),
    ("mlp", nn.Linear(8, 8)),
    (
        "mlp",
        nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.LayerNorm(8), nn.Dropout(), nn.Linear(8, 2)),
    ),
    (None, nn.Sequential(nn.Embedding(8, 8), nn.Linear(8, 2))),
    (None, Raw()),
    (None, nn.ReLU()),
    (None, nn.BatchNorm1d(8)),
    (None, nn.Sequential()),
]


@pytest.mark.parametrize(("kind", "model"), CASES)
def test_family(kind: str | None, model: Any) -> None:
    assert family(model) == kind
