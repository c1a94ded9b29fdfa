"""A gradient penalty in every third step only, with images of its own: torch.compile knows no second derivatives."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(1, 10):
    inputs = torch.randn(16, 4)
    loss = model(inputs).square().mean()
    if step % 3 == 0:
        between = torch.lerp(inputs, torch.randn(16, 4), 0.5).requires_grad_()
        (slope,) = torch.autograd.grad(model(between).sum(), between, create_graph=True)
        loss = loss + (slope.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype, f"{loss.item():.0f}")
