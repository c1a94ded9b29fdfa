"""Modules whose parameters get their shapes in the first call; the optimizer is made before it, and after it."""

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for early in (True, False):
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    if not early:
        model(images)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.dtype, {name: tuple(value.shape) for name, value in model.state_dict().items()})
