"""Whole optimizers are copied and saved, not only their state."""

import copy
import io
import pickle

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(8, 4)
for _ in range(5):
    optimizer.zero_grad()
    model(inputs).square().sum().backward()
    optimizer.step()
buffer = io.BytesIO()
torch.save(optimizer, buffer)
buffer.seek(0)
copies = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer)), torch.load(buffer, weights_only=False)]
for one in copies:
    print(type(one).__name__, one.state_dict()["param_groups"])
    print([state["step"] for state in one.state_dict()["state"].values()])
    for group in one.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    one.step()
    print([state["step"] for state in one.state_dict()["state"].values()])
