"""A pretrained body is frozen first and unfrozen in two steps, each of which adds its weights to the optimizer. Or it
is trained, frozen as its head is replaced, and unfrozen: no call was compiled for that head and an unfrozen body.
"""

import sys

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2)
model = nn.Sequential(body, head)


def train():
    before = [weight.detach().clone() for weight in model.parameters()]
    for _ in range(4):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print([not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)])


if "head" in sys.argv:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train()
    body.requires_grad_(False)
    model[1] = nn.Linear(8, 3)
    optimizer.add_param_group({"params": model[1].parameters()})
    train()
    body.requires_grad_(True)
    train()
else:
    body.requires_grad_(False)
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.01)
    train()
    for part in (body[2], body[0]):
        part.requires_grad_(True)
        optimizer.add_param_group({"params": part.parameters()})
        train()
