"""The program's own autocast around model and loss, from the given step on, after a warm-up in full precision."""

import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = torch.randn(16, 4)
for step in range(8):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step >= int(sys.argv[1])):
        outputs = model(inputs)
        loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}", outputs.dtype, loss.dtype)
