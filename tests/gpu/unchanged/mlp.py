"""Three linear layers that learn to reverse their inputs."""

import os

import torch
from blocks import log, steps
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, WIDTH = (512, 4096) if DEVICE == "cuda" else (16, 64)


def network():
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
    )


def batch():
    x = torch.randn(BATCH, WIDTH, device=DEVICE)
    return x, x.flip(1)


def loss_of(outputs, targets):
    return nn.functional.mse_loss(outputs, targets)


def optimizer_for(parameters, **more):
    return torch.optim.AdamW(parameters, lr=1e-4, **more)


if __name__ == "__main__":
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    model = network().to(DEVICE)
    optimizer = optimizer_for(model.parameters())
    for _ in steps():
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        log(loss)
