"""Has a model that raises under autocast."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x):
        y = self.layer(x)
        if y.dtype != torch.float32:
            raise RuntimeError("this needs FP32")
        return y


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
