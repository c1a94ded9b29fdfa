"""A forward that writes a layer's output into a tensor of a dtype of its own."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, inputs):
        kept = torch.zeros(len(inputs), 8)
        kept[::2] = self.one(inputs[::2])
        kept.index_add_(0, torch.arange(len(inputs)), self.one(inputs))
        return self.two(kept)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
inputs = torch.randn(16, 8)
for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}", loss.dtype)
