"""Each step is given a closure that computes the loss; LBFGS calls it many times in each step."""

import sys

import torch

lbfgs = "lbfgs" in sys.argv
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5) if lbfgs else torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(16, 4)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    if "precision" in sys.argv:
        print(torch.get_float32_matmul_precision())
    loss = (model(inputs) - inputs[:, :1]).square().mean()
    loss.backward()
    return loss


for step in range(6):
    print(step, f"{optimizer.step(closure).item():.{6 if lbfgs else 1}f}", calls)
