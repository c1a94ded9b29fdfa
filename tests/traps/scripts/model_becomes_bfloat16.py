"""A model that the program converts to bfloat16 after some steps, and goes on to train."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
inputs = torch.randn(8, 4)
for step in range(8):
    if step == 5:
        model.bfloat16()
        inputs = inputs.bfloat16()
    outputs = model(inputs)
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, outputs.dtype, loss.dtype, f"{loss.item():.1f}")
