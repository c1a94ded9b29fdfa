"""BCELoss, which raises under autocast, inside the model's forward."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        self.criterion = nn.BCELoss()

    def forward(self, inputs, labels):
        return self.criterion(self.layers(inputs), labels)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
inputs = torch.randn(32, 8)
labels = (inputs.sum(1, keepdim=True) > 0).float()
for step in range(6):
    loss = model(inputs, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", loss.dtype)
