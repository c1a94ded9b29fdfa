"""A gradient penalty that flattens the gradients of images with view, and later their gradients without a penalty."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Tanh(), nn.Conv2d(8, 8, 3, 2, 1), nn.Flatten(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def slope(images, penalty):
    (gradient,) = torch.autograd.grad(model(images).sum(), images, create_graph=penalty)
    return gradient.view(len(images), -1).norm(dim=1)


for step in range(6):
    images = torch.randn(4, 3, 8, 8).requires_grad_()
    loss = model(images).square().mean() + (slope(images, True) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype, f"{loss.item():.0f}", images.grad.view(4, -1).shape)
print(slope(images, False).shape)
