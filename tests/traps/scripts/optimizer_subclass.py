"""An optimizer with a step of its own around its parent's, and one that changes gradients; a fresh one of torch's."""

import torch
from torch import nn


class Looking(torch.optim.AdamW):
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad.clamp_(-1, 1)
        return super().step(closure)


torch.manual_seed(0)
inputs = torch.randn(8, 4)
plain = nn.Linear(4, 1)
torch.optim.AdamW(plain.parameters())
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = Looking(model.parameters(), lr=0.01)
for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", [state["step"].item() for state in optimizer.state.values()])
print(optimizer.state_dict()["param_groups"])
