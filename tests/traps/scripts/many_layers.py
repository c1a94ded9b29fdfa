"""The program calls a hundred modules one by one."""

import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Linear(4, 4) for _ in range(100)]
optimizer = torch.optim.SGD([parameter for layer in layers for parameter in layer.parameters()], lr=0.01)
for step in range(5):
    hidden = torch.ones(8, 4)
    for layer in layers:
        hidden = layer(hidden)
    loss = (hidden - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}")
