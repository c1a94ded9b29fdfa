"""A siamese network: the model is called twice in each step, and a third time by a keyword."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, inputs, scale=1.0):
        return self.layers(inputs) * scale


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
anchor, near, far = (torch.randn(16, 8) for _ in range(3))
for step in range(6):
    loss = nn.functional.triplet_margin_loss(model(anchor), model(near), model(scale=2.0, inputs=far))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype, f"{loss.item():.1f}")
