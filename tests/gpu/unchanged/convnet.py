"""ResNet-50."""

import os

import torch
from blocks import log, steps
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = (128, 224, 64, (3, 4, 6, 3), 1000) if DEVICE == "cuda" else (2, 32, 8, (1, 1, 1, 1), 10)
BATCH, SIDE, WIDTH, DEPTHS, CLASSES = SIZES


def convolution(channels, out, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.reduce = convolution(channels, width, 1)
        self.convolve = convolution(width, width, 3, stride)
        self.expand = convolution(width, out, 1)
        self.shortcut = nn.Identity() if channels == out else convolution(channels, out, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        inner = self.relu(self.reduce(x))
        inner = self.relu(self.convolve(inner))
        return self.relu(self.expand(inner) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, WIDTH, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], WIDTH
        for stage, depth in enumerate(DEPTHS):
            for number in range(depth):
                blocks.append(Bottleneck(channels, WIDTH << stage, 2 if stage and not number else 1))
                channels = 4 * WIDTH << stage
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(channels, CLASSES)

    def forward(self, x):
        return self.classes(self.blocks(self.stem(x)).mean((2, 3)))


def network():
    return ResNet()


def batch():
    """Images of noise on stripes, the closer the higher the number of the class."""
    y = torch.randint(CLASSES, (BATCH,), device=DEVICE)
    angles = torch.linspace(0, 3, SIDE, device=DEVICE) * (y + 1)[:, None]
    return torch.randn(BATCH, 3, SIDE, SIDE, device=DEVICE) + angles.sin()[:, None, None, :], y


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets)


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
