"""Has an optimizer, as a training script has that is asked to evaluate, and takes no step."""

import torch
from training import parts

network, optimizer = parts()
with torch.no_grad():
    for _ in range(5000):
        network(torch.randn(64, 64))
