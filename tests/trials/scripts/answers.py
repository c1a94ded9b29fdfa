"""Trains nothing: an image model's calls without gradients. With `inference` they are in torch's inference mode."""

import sys

import torch
from torch import nn


def block(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()


mode = torch.inference_mode if "inference" in sys.argv else torch.no_grad
torch.manual_seed(0)
pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
model = nn.Sequential(*block(3, 32), *block(32, 64, 2), *block(64, 128, 2), *pooled).eval()
head = nn.Softmax(dim=-1)
right = 0
with mode():
    while True:
        x = torch.randn(16, 3, 64, 64)
        right += int((head(model(x)).argmax(-1) == 3).sum())
