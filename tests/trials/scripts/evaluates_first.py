"""Looks at how its model does before it trains it."""

import torch
from training import forever, parts

network, optimizer = parts()
with torch.no_grad():
    for _ in range(100):
        network(torch.randn(64, 64))
for _ in forever(network, optimizer):
    pass
