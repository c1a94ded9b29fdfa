"""A model that switches autocast off for a part of itself, as attention in full precision does."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, inputs):
        with torch.autocast("cpu", enabled=False):
            precise = self.one(inputs.float())
            assert precise.dtype == torch.float32
        return self.two(precise)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = torch.randn(16, 4)
for step in range(5):
    outputs = model(inputs)
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", outputs.dtype, loss.dtype)
