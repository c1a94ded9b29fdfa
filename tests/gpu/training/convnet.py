"""Residual blocks in four stages with SGD, as in ResNet-18."""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, WIDTH, DEPTH, SIDE, CLASSES = (512, 64, 2, 112, 100) if DEVICE == "cuda" else (8, 16, 1, 64, 10)


def convolution(channels, out, kernel, stride):
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(out))


class Residual(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = convolution(channels, out, 3, stride)
        self.second = convolution(out, out, 3, 1)
        self.shortcut = nn.Identity() if channels == out else convolution(channels, out, 1, stride)

    def forward(self, x):
        inner = self.second(torch.relu(self.first(x)))
        return torch.relu(inner + self.shortcut(x))


def network():
    layers = [convolution(3, WIDTH, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = WIDTH
    for stage in range(4):
        out = WIDTH * 2**stage
        layers.append(Residual(channels, out, 2 if stage else 1))
        layers += [Residual(out, out, 1) for _ in range(DEPTH - 1)]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def batch():
    return torch.randn(BATCH, 3, SIDE, SIDE, device=DEVICE), torch.randint(CLASSES, (BATCH,), device=DEVICE)


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets)


def optimizer_for(parameters, **more):
    return torch.optim.SGD(parameters, lr=0.001, **more)
