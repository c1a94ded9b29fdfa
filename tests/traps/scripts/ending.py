"""The program ends in the middle of training: by itself with an exit code, by Ctrl-C within an optimizer's step, or by
SIGTERM, which it may handle as clusters want it: it saves a checkpoint and ends with its own exit code.
"""

import atexit
import os
import signal
import sys

import torch

how = sys.argv[1]
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())


def save(number, frame):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
    saved = torch.load("last.pt")["optimizer"]
    print(saved["param_groups"], [state["step"] for state in saved["state"].values()], flush=True)
    sys.exit(100 + number)


def interrupt(optimizer, *_):
    if step == 4:
        os.kill(os.getpid(), signal.SIGINT)


atexit.register(print, "at exit")
signal.signal(signal.SIGINT, signal.default_int_handler)
if how == "interrupted":
    optimizer.register_step_pre_hook(interrupt)
if how == "sigterm_handled":
    signal.signal(signal.SIGTERM, save)
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(16, 4)).square().mean().backward()
    if step == 4 and how.startswith("sigterm"):
        os.kill(os.getpid(), signal.SIGTERM)
    optimizer.step()
    print(step, flush=True)
    if step == 4 and how == "exit":
        sys.exit(3)
