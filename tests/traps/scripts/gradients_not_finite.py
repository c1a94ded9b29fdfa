"""A root of a difference that is zero in half precision alone: its gradient is infinite there."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, inputs):
        hidden = self.first(inputs)
        if step == 5:
            near = torch.full_like(hidden, 256.5) + (hidden - hidden.detach())
            hidden = hidden * (near - 256).sqrt()
        return self.second(hidden)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
inputs = torch.randn(32, 8)
for step in range(9):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, all(bool(one.isfinite().all()) for one in model.parameters()))
