"""The program flattens weights and gradients with view, as regularisers and hand-written optimizers do."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images = torch.randn(4, 3, 8, 8)
for step in range(6):
    loss = nn.functional.mse_loss(model(images), images)
    flat = torch.cat([parameter.view(-1) for parameter in model.parameters()])
    optimizer.zero_grad()
    (loss + 1e-4 * flat.square().sum()).backward()
    norm = torch.cat([parameter.grad.view(-1) for parameter in model.parameters()]).norm()
    optimizer.step()
    print(step, f"{loss.item():.1f}", norm.dtype)
