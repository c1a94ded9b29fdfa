"""Validation that forgets no_grad, and whose results go into numpy-like code that knows no bfloat16."""

import array

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(64, 8), torch.randint(0, 4, (64,))
for _ in range(3):
    for batch, label in zip(inputs.split(16), labels.split(16), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), label).backward()
        optimizer.step()
    model.eval()
    outputs = model(inputs)
    model.train()
    numbers = array.array("f", outputs.detach().flatten().tolist())
    print(outputs.dtype, outputs.requires_grad, len(numbers), outputs.is_contiguous())
