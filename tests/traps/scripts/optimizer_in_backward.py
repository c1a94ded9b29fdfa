"""An optimizer for each parameter, which steps as soon as its gradient is there, within backward."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizers = {parameter: torch.optim.AdamW([parameter], lr=0.01) for parameter in model.parameters()}


def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
inputs = torch.randn(8, 4)
for step in range(6):
    loss = model(inputs).square().mean()
    loss.backward()
    print(step, f"{loss.item():.1f}", loss.dtype)
print([optimizer.state[parameter]["step"].item() for parameter, optimizer in optimizers.items()])
