"""An encoder, two heads and a bare parameter in one optimizer; the loss of one head comes only every second step."""

from itertools import chain

import torch
from torch import nn

torch.manual_seed(0)
encoder, one, two = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1), nn.Linear(8, 3)
scale = nn.Parameter(torch.ones(1))
optimizer = torch.optim.AdamW([*chain(encoder.parameters(), one.parameters(), two.parameters()), scale], lr=0.01)
inputs, labels = torch.randn(8, 4), torch.randint(0, 3, (8,))
for step in range(8):
    hidden = encoder(inputs) * scale
    loss = one(hidden).square().mean()
    if step % 2:
        loss = loss + nn.functional.cross_entropy(two(hidden), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, hidden.dtype, loss.dtype, f"{loss.item():.0f}")
print([state["step"].item() for state in optimizer.state.values()])
