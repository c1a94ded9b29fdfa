"""Looks at how its model does before it trains it. With `later` its optimizer is made only after that."""

import sys

import torch
from training import forever, model

network = model()
optimizer = None if "later" in sys.argv else torch.optim.AdamW(network.parameters())
with torch.no_grad():
    for _ in range(30):
        network(torch.randn(64, 64))
for _ in forever(network, optimizer or torch.optim.AdamW(network.parameters())):
    pass
