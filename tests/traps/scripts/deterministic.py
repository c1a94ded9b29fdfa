"""torch.use_deterministic_algorithms, with warnings as errors."""

import warnings

import torch
from torch import nn

warnings.simplefilter("error")
torch.use_deterministic_algorithms(True)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for step in range(6):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", torch.are_deterministic_algorithms_enabled())
