"""An optimizer written from scratch, whose state and arithmetic are its own; and updates without any optimizer."""

import torch
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-2):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                mean = self.state[parameter].setdefault("mean", torch.zeros_like(parameter))
                parameter.sub_(mean.lerp(parameter.grad, 0.1).sign_(), alpha=group["lr"])
                mean.lerp_(parameter.grad, 0.01)


torch.manual_seed(0)
inputs = torch.randn(8, 4)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = Lion(model.parameters())
for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", loss.dtype)
print(optimizer.state_dict()["param_groups"])
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
for step in range(6):
    loss = model(inputs).square().mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    print(step, f"{loss.item():.3f}", loss.dtype)
