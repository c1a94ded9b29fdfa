"""Three Linear layers with a mean squared error and SGD."""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, WIDTH = (512, 4096) if DEVICE == "cuda" else (64, 512)


def network():
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
    )


def batch():
    return torch.randn(BATCH, WIDTH, device=DEVICE), torch.randn(BATCH, WIDTH, device=DEVICE)


def loss_of(outputs, targets):
    return nn.functional.mse_loss(outputs, targets)


def optimizer_for(parameters, **more):
    return torch.optim.SGD(parameters, lr=0.001, **more)
