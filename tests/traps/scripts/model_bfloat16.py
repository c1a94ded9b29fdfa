"""A model in half precision."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(16, 4, dtype=torch.bfloat16)
for step in range(5):
    outputs = model(inputs)
    loss = outputs.abs().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), outputs.dtype)
