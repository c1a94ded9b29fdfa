"""An optimizer of bare parameters, without any module."""

import torch

torch.manual_seed(0)
weight = torch.randn(4, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=0.1)
for step in range(6):
    loss = (weight - 1).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
