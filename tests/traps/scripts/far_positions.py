"""Rotary positions from 65536 on, from a product that autocast would make in half precision."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(16, 16), nn.Linear(16, 4)
        self.register_buffer("rates", 10.0 ** -torch.linspace(0, 2, 8))

    def forward(self, inputs):
        places = torch.arange(65536, 65536 + inputs.shape[1]).float()
        angles = places[:, None] @ self.rates[None]
        turned = torch.cat([angles.cos(), angles.sin()], -1).float()
        return self.head(self.layer(inputs).float() * turned)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs, targets = torch.randn(8, 12, 16), torch.randn(8, 12, 4)
for _ in range(12):
    loss = (model(inputs) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.1f}")
