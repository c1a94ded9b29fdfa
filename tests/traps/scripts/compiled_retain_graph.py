"""Two losses of one output, where from the sixth step on every third keeps the graph for the second."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(32, 8)
losses = []
for step in range(1, 10):
    one, other = model(inputs).unbind(1)
    first, second = (one - 1).square().mean(), other.square().mean()
    optimizer.zero_grad()
    if step < 6 or step % 3:
        (first + second).backward()
    else:
        first.backward(retain_graph=True)
        second.backward()
    optimizer.step()
    losses.append((first + second).item())
print(f"loss {losses[0]:.1f}, falls: {losses[-1] < losses[0]}")
