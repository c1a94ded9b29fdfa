"""The model's forward raises in its first step, and the program ends by it."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, inputs):
        return self.layer(inputs).reshape(3, 5)


model = Net()
optimizer = torch.optim.AdamW(model.parameters())
optimizer.zero_grad()
model(torch.ones(16, 4)).square().mean().backward()
optimizer.step()
