"""A hook stops each forward by an exception, once it has the features it wants."""

import torch
from torch import nn


class Enough(Exception):
    pass


def keep(module, inputs, output):
    features.append(output)
    if stop:
        raise Enough


torch.manual_seed(0)
features, stop = [], False
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model[1].register_forward_hook(keep)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(8):
    stop = step > 4
    optimizer.zero_grad()
    try:
        loss = model(torch.ones(8, 4)).square().mean()
    except Enough:
        loss = features[-1].square().mean()
    loss.backward()
    optimizer.step()
    print(step, len(features))
