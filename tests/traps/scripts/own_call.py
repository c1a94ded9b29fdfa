"""A model with a __call__ of its own, which counts; and one whose class allows no new attributes."""

import torch
from torch import nn


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.calls = 0

    def __call__(self, *inputs, **named):
        self.calls += 1
        return super().__call__(*inputs, **named)

    def forward(self, inputs):
        return self.layer(inputs)


class Closed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.closed = True

    def __setattr__(self, name, value):
        if getattr(self, "closed", False):
            raise AttributeError(f"no new {name}")
        super().__setattr__(name, value)

    def forward(self, inputs):
        return self.layer(inputs)


torch.manual_seed(0)
inputs = torch.randn(8, 4)
for kind in (Counted, Closed):
    model = kind()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(5):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, step, f"{loss.item():.1f}", loss.dtype, getattr(model, "calls", None))
