"""Gradients are clipped by their norm, which is read before."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(32, 8) * 100
for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    after = torch.stack([parameter.grad.norm() for parameter in model.parameters()]).norm()
    print(step, norm.dtype, bool(norm > 1), f"{after.item():.2f}")
    optimizer.step()
