"""What the scripts share: a small model and its endless training."""

import torch
from torch import nn


def model():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def parts():
    network = model()
    return network, torch.optim.AdamW(network.parameters())


def step(network, optimizer):
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(x), y)
    loss.backward()
    optimizer.step()
    return loss


def forever(network, optimizer):
    while True:
        yield step(network, optimizer)
