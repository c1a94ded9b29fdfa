"""One of the optimizer's groups is given a form of its own."""

import torch

torch.manual_seed(0)
one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW([{"params": one.parameters(), "foreach": True}, {"params": two.parameters()}], lr=0.01)
model = torch.nn.Sequential(one, two)
inputs = torch.randn(16, 4)
for _ in range(5):
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
print([(group["fused"], group["foreach"]) for group in optimizer.state_dict()["param_groups"]])
