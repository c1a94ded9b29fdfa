"""torch.fx.symbolic_trace of the model, in the middle of training and in its first steps; a traced model is trained."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, inputs):
        return self.layers(inputs) + self.layers(inputs * 2)


class Outer(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, inputs):
        return self.net(inputs) * 2


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(16, 4)
for step in range(6):
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    if step in (0, 4):
        traced = torch.fx.symbolic_trace(model)
        print(step, [(node.op, str(node.target)) for node in traced.graph.nodes])
        print(step, len(list(torch.fx.symbolic_trace(Outer(model)).graph.nodes)))
        with torch.no_grad():
            print(torch.equal(traced(inputs), model(inputs)))
optimizer = torch.optim.AdamW(traced.parameters(), lr=0.01)
for _ in range(4):
    optimizer.zero_grad()
    loss = traced(inputs).square().mean()
    loss.backward()
    optimizer.step()
print(loss.dtype, type(traced).__name__, list(traced.state_dict()) == list(model.state_dict()))
