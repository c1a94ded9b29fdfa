"""The program compiles its model only after some steps: wrapped, in place, and a function around it."""

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
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = torch.randn(16, 4)
train(model, 4)
train(torch.compile(model, backend="eager", fullgraph=True), 3)
train(torch.compile(lambda inputs: model(inputs) + 0, backend="eager", fullgraph=True), 3)
model.compile(backend="eager", fullgraph=True)
train(model, 3)
print(list(model.state_dict()))
