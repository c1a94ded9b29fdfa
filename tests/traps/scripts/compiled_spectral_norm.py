"""A discriminator with spectral normalisation is called twice before its backward pass, as in most GANs."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
norm = nn.utils.spectral_norm if "buffers" in sys.argv else nn.utils.parametrizations.spectral_norm
model = nn.Sequential(norm(nn.Linear(16, 8)), nn.LeakyReLU(0.1), norm(nn.Linear(8, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for _ in range(6):
    optimizer.zero_grad()
    real, fake = model(torch.randn(8, 16) + 1), model(torch.randn(8, 16))
    loss = (1 - real).relu().mean() + (1 + fake).relu().mean()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.1f}")
