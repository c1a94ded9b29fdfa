"""The program compiles its model in place, and a part of another one; or only after some steps: wrapped, a function
around it, and in place.
"""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, inputs):
        return self.two(self.one(inputs).relu())


def train(call, steps):
    for _ in range(steps):
        loss = call(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.1f}", loss.dtype)


torch.manual_seed(0)
inputs = torch.randn(16, 4)
whole = Net()
model = nn.Sequential(nn.Linear(4, 4), Net())
if "later" in sys.argv:
    model = whole
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train(model, 4)
    train(torch.compile(model, backend="eager", fullgraph=True), 3)
    train(torch.compile(lambda inputs: model(inputs) + 0, backend="eager", fullgraph=True), 3)
    model.compile(backend="eager", fullgraph=True)
    train(model, 3)
else:
    model[1].compile(backend="eager")
    whole.compile(backend="eager")
    optimizer = torch.optim.AdamW([*model.parameters(), *whole.parameters()], lr=1e-3)
    train(lambda inputs: model(inputs) - whole(inputs), 6)
print(list(model.state_dict()), list(whole.state_dict()))
