"""Two trainings from the same seed give the same losses and weights, to the last bit."""

import torch
from torch import nn


def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


(one, weights), (two, others) = train(), train()
print(one == two, all(torch.equal(value, others[name]) for name, value in weights.items()))
torch.save((one, weights), "twice.pt")
