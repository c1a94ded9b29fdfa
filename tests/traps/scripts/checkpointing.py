"""Gradient checkpointing, which computes a part of the model again during backward; dropout draws the same again.
Reentrant, that part runs without gradients first.
"""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.1)) for _ in range(3))
        self.last = nn.Linear(16, 1)

    def forward(self, inputs):
        hidden = self.first(inputs)
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant="reentrant" in sys.argv)
        return self.last(hidden)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(32, 8)
for step in range(6):
    loss = (model(inputs) - inputs[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    print(step, f"{loss.item():.1f}", [parameter.grad.abs().sum().item() > 0 for parameter in model.parameters()])
    optimizer.step()
