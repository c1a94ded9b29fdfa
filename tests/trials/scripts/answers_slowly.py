"""Trains nothing, and stands still in each call whose weights are not in channels_last: a gain that is certain. With
`inference` its calls are in torch's inference mode.
"""

import sys
import time

import torch
from torch import nn


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 10)

    def forward(self, x):
        if not self.layer.weight.is_contiguous(memory_format=torch.channels_last):
            time.sleep(0.004)
        return self.head(self.layer(x).mean((2, 3)))


model = Slow().eval()
with torch.inference_mode() if "inference" in sys.argv else torch.no_grad():
    while True:
        model(torch.randn(2, 3, 16, 16))
