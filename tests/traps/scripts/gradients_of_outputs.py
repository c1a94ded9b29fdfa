"""A model that returns its features beside its scores, and a program that takes gradients of the features."""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        features = self.convolutions(images)
        return {"scores": self.head(features.relu().mean((2, 3))), "features": features}


torch.manual_seed(0)
images, labels = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    out = model(images)
    features, loss = out["features"], nn.functional.cross_entropy(out["scores"], labels)
    if "hook" in sys.argv:
        features.register_hook(lambda gradient: gradient * 0.1)
    elif "retain" in sys.argv:
        features.retain_grad()
    else:
        [gradient] = torch.autograd.grad(loss, features, retain_graph=True)
        loss = loss + gradient.norm()
    optimizer.zero_grad()
    loss.backward()
    print(step, features.grad is not None, f"{model.convolutions[0].weight.grad.norm():.5f}")
    optimizer.step()
