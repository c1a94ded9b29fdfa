"""Three linear layers that learn to reverse their inputs."""

import torch
from shared import DEVICE, train
from torch import nn

BATCH, WIDTH = (512, 4096) if DEVICE == "cuda" else (16, 64)


def network():
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
    )


loss_of = nn.functional.mse_loss


def batch():
    x = torch.randn(BATCH, WIDTH, device=DEVICE)
    return x, x.flip(1)


if __name__ == "__main__":
    train(network, batch, loss_of)
