"""The program calls the layers of its model one by one, and never the model."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())
        self.classifier = nn.Linear(144, 2)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for step in range(6):
    features = model.features(images)
    logits = model.classifier(features)
    loss = nn.functional.cross_entropy(logits, labels) + 1e-3 * features.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, features.dtype, logits.dtype, f"{loss.item():.1f}")
