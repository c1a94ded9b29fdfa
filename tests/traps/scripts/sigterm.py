"""SIGTERM ends the program in the middle of a step."""

import os
import signal

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(16, 4)).square().mean().backward()
    if step == 4:
        os.kill(os.getpid(), signal.SIGTERM)
    optimizer.step()
    print(step, flush=True)
