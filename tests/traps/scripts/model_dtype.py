"""A model in a data type of its own, whose name is given: nothing in it may become less precise."""

import sys

import torch

dtype = getattr(torch, sys.argv[1])

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)).to(dtype)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(16, 4, dtype=dtype)
for step in range(5):
    outputs = model(inputs)
    loss = outputs.abs().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), outputs.dtype)
