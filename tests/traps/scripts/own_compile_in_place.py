"""The program compiles its model in place, and a part of another one."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, inputs):
        return self.two(self.one(inputs).relu())


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), Net())
model[1].compile(backend="eager")
whole = Net()
whole.compile(backend="eager")
optimizer = torch.optim.AdamW([*model.parameters(), *whole.parameters()], lr=1e-3)
inputs = torch.randn(16, 4)
for step in range(6):
    loss = (model(inputs) - whole(inputs)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}", loss.dtype)
print(list(model.state_dict()), list(whole.state_dict()))
