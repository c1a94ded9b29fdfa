"""A network whose calls take longer in half precision: here they wait."""

import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, inputs):
        hidden = self.first(inputs)
        time.sleep(0.02 if hidden.dtype == torch.bfloat16 else 0.01)
        return self.second(hidden.relu())


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
inputs, targets = torch.randn(32, 8), torch.randint(0, 4, (32,))
for _ in range(160):
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.1f}", torch.get_autocast_dtype("cpu"))
