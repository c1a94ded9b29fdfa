"""Validation between the epochs: under no_grad its numbers are those of full precision; where the program forgets it,
the results go into numpy-like code that knows no bfloat16.
"""

import array
import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(64, 8), torch.randint(0, 4, (64,))
held = torch.randn(16, 8)
for _ in range(4):
    model.train()
    for batch, label in zip(inputs.split(16), labels.split(16), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), label).backward()
        optimizer.step()
    model.eval()
    if "gradients" in sys.argv:
        outputs = model(held)
        numbers = array.array("f", outputs.detach().flatten().tolist())
        print(outputs.dtype, outputs.requires_grad, len(numbers), outputs.is_contiguous())
        continue
    with torch.no_grad():
        outputs = model(held)
        by_hand = held
        for layer in model:
            by_hand = layer.forward(by_hand)
    print(outputs.dtype, outputs.requires_grad, torch.equal(outputs, by_hand), model.training)
