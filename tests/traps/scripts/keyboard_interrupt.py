"""Ctrl-C arrives within an optimizer's step."""

import os
import signal

import torch

signal.signal(signal.SIGINT, signal.default_int_handler)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
step = 0


def interrupt(optimizer, *_):
    if step == 4:
        os.kill(os.getpid(), signal.SIGINT)


optimizer.register_step_pre_hook(interrupt)
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(16, 4)).square().mean().backward()
    optimizer.step()
    print(step, flush=True)
