"""Trains nothing: an image model's calls without gradients. With `inference` they are in torch's inference mode."""

import sys

import torch
from torch import nn

mode = torch.inference_mode if "inference" in sys.argv else torch.no_grad
layers = (nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(), nn.Flatten())
model = nn.Sequential(*layers, nn.Linear(64 * 14 * 14, 10))
head = nn.Softmax(dim=-1)
right = 0
with mode():
    while True:
        x = torch.randn(8, 3, 32, 32)
        right += int((head(model(x)).argmax(-1) == 3).sum())
