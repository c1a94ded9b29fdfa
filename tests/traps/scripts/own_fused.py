"""The program decides about the form of its optimizers itself."""

import torch

torch.manual_seed(0)
inputs = torch.randn(16, 4)
for given in ({"fused": True}, {"fused": False}, {"foreach": True}, {"foreach": False}):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, **given)
    for _ in range(4):
        optimizer.zero_grad()
        (model(inputs) - inputs[:, :1]).square().mean().backward()
        optimizer.step()
    saved = optimizer.state_dict()["param_groups"][0]
    print(given, saved["fused"], saved["foreach"])
