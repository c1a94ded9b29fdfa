"""A model that torch.compile cannot take whole: it prints, and branches on the value of a tensor."""

import torch
from torch import nn

calls = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, inputs):
        hidden = self.one(inputs)
        calls.append(len(calls))
        print("call", len(calls))
        if hidden.sum() > 1e9:
            hidden = -hidden
        return self.two(hidden.relu())


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(16, 8)
for _ in range(5):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(calls, list(model.state_dict()))
