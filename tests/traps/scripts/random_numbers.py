"""Dropout draws random numbers in the model, and the order of samples follows from those that come after."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1), nn.Dropout(0.1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(12.0)), batch_size=4, shuffle=True)
for epoch in range(4):
    for (batch,) in loader:
        loss = model(batch[:, None].expand(4, 4) / 12).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, batch.tolist(), random.random())
print(torch.rand(3))
