"""Gradients of four batches are accumulated before each step."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(256, 8)
targets = inputs.sum(1, keepdim=True)
steps, losses = 0, []
for number, (batch, target) in enumerate(zip(inputs.split(8), targets.split(8), strict=True), 1):
    loss = torch.nn.functional.mse_loss(model(batch), target) / 4
    loss.backward()
    losses.append(loss.item())
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        steps += 1
        print(steps, [parameter.grad.abs().sum().item() for parameter in model.parameters()])
print(f"{losses[0]:.1f}", sum(losses[-8:]) < sum(losses[:8]), loss.dtype)
