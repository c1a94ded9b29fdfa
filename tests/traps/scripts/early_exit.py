"""The program ends itself with an exit code in the middle of training."""

import atexit
import sys

import torch

atexit.register(print, "at exit")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(16, 4)).square().mean().backward()
    optimizer.step()
    print(step)
    if step == 4:
        sys.exit(3)
