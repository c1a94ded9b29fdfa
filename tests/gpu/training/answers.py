"""A program that trains nothing: `python answers.py NAME` asks the network of a script in `unchanged/` without end."""

import importlib
import sys

import torch
from shared import DEVICE

script = importlib.import_module(sys.argv[1])
model = script.network().to(DEVICE).eval()
right = torch.zeros((), dtype=torch.long, device=DEVICE)
with torch.no_grad():
    while True:
        inputs, targets = script.batch()
        found = model(inputs)
        if found.shape[:-1] == targets.shape:
            right += (found.argmax(-1) == targets).sum()
