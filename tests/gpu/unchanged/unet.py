"""A U-Net that learns which pixels of an image are bright."""

from itertools import pairwise

import torch
from shared import DEVICE, train
from torch import nn

BATCH, SIDE, WIDTH, DEPTH = (8, 256, 64, 4) if DEVICE == "cuda" else (2, 32, 8, 2)


def convolutions(channels, out):
    layers = []
    for size in (channels, out):
        layers += [nn.Conv2d(size, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [WIDTH << level for level in range(DEPTH + 1)]
        pairs = list(pairwise(widths))
        self.first = convolutions(3, WIDTH)
        self.down = nn.ModuleList(convolutions(narrow, wide) for narrow, wide in pairs)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, 2) for narrow, wide in reversed(pairs))
        self.up = nn.ModuleList(convolutions(wide, narrow) for narrow, wide in reversed(pairs))
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Conv2d(WIDTH, 1, 1)

    def forward(self, x):
        x, skips = self.first(x), []
        for down in self.down:
            skips.append(x)
            x = down(self.pool(x))
        for grow, up in zip(self.grow, self.up, strict=True):
            x = up(torch.cat([skips.pop(), grow(x)], dim=1))
        return self.last(x)


network, loss_of = UNet, nn.functional.binary_cross_entropy_with_logits


def batch():
    x = torch.randn(BATCH, 3, SIDE, SIDE, device=DEVICE)
    return x, (x.mean(1, keepdim=True) > 0.5).float()


if __name__ == "__main__":
    train(network, batch, loss_of)
