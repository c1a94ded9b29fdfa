"""A model that puts its output, with an attribute, into the dictionary that it is given, and returns that."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))

    def forward(self, batch):
        batch["scores"] = self.layers(batch["images"])
        batch["scores"].scale = 2.0
        return batch


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(6):
    batch = {"images": torch.randn(4, 3, 8, 8)}
    output = model(batch)
    output["weight"] = 3.0
    loss = batch.get("weight", 1.0) * getattr(batch["scores"], "scale", 1.0) * batch["scores"].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, output is batch, batch["scores"].dtype, f"{loss.item():.1f}")
