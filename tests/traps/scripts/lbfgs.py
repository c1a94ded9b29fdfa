"""LBFGS, which calls the model many times in each step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
inputs = torch.randn(16, 4)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = (model(inputs) - inputs[:, :1]).square().mean()
    loss.backward()
    return loss


for step in range(5):
    print(step, f"{optimizer.step(closure).item():.6f}", calls)
