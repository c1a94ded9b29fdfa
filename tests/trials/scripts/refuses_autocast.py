"""Has a loss in its model that raises under autocast."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return nn.functional.linear(x, self.layer.weight.to(self.probe().dtype), self.layer.bias)

    def probe(self):
        with torch.autocast("cpu", enabled=torch.is_autocast_enabled("cpu"), dtype=torch.bfloat16):
            return self.layer(torch.ones(1, 8))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
