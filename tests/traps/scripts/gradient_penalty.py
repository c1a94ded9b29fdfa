"""A gradient penalty: torch.autograd.grad with create_graph, and so a derivative of the model's derivative, which
torch.compile does not know. It comes in each step or, if so given, in every third only, with inputs of its own.
"""

import sys

import torch
from torch import nn

every = int(sys.argv[1])
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(1, 10):
    inputs = torch.randn(16, 4)
    loss = model(inputs).square().mean()
    if step % every == 0:
        between = torch.lerp(inputs, torch.randn(16, 4), 0.5).requires_grad_()
        (slope,) = torch.autograd.grad(model(between).sum(), between, create_graph=True)
        loss = loss + (slope.norm(dim=1) - 1).square().mean()
        print(slope.dtype)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype, f"{loss.item():.0f}")
