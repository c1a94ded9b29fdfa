"""A gradient penalty: torch.autograd.grad with create_graph, and so a derivative of the model's derivative."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    inputs = torch.randn(16, 4, requires_grad=True)
    outputs = model(inputs)
    (slope,) = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
    loss = outputs.square().mean() + (slope.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, slope.dtype, loss.dtype, f"{loss.item():.0f}")
