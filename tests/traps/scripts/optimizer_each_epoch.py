"""A new optimizer in each epoch, and a new model in each fold."""

import gc
import weakref

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(8, 4)
gone = []
for fold in range(2):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    for epoch in range(3):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01 / (epoch + 1))
        for _ in range(4):
            loss = model(inputs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(fold, epoch, f"{loss.item():.1f}", loss.dtype, optimizer.state_dict()["param_groups"][0]["fused"])
    gone += [weakref.ref(model), weakref.ref(optimizer), weakref.ref(model[0].weight)]
del model, optimizer, loss
gc.collect()
print("freed:", [one() is None for one in gone])
