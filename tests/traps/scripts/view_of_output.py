"""The loss flattens outputs in the shape of images with view. So does the program with weights and gradients, as
regularisers and hand-written optimizers do, if it is asked to.
"""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images = torch.randn(4, 3, 8, 8)
for step in range(6):
    outputs = model(images)
    loss = nn.functional.mse_loss(outputs.view(-1), images.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", outputs.is_contiguous(), outputs.stride(), outputs.dtype)
    if "weights" in sys.argv:
        print([(parameter.view(-1).dtype, parameter.grad.view(-1).dtype) for parameter in model.parameters()])
