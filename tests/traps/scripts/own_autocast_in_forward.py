"""The program's own autocast inside forward, once in a with statement and once as a decorator; another is off."""

import torch
from torch import nn


class Inside(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layer(inputs)


class Decorated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, inputs):
        return self.layer(inputs).float()


torch.manual_seed(0)
for kind in (Inside, Decorated):
    model = kind()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randn(16, 4)
    for step in range(5):
        outputs = model(inputs)
        loss = outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, step, f"{loss.item():.3f}", outputs.dtype, loss.dtype)
