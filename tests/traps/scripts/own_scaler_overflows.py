"""A loss scaler without autocast, whose first scales overflow: those steps are skipped, and the scale falls."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=4)
inputs = torch.randn(16, 4)
for step in range(16):
    outputs = model(inputs)
    loss = outputs.square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, outputs.dtype, scaler.get_scale())
print({int(state["step"]) for state in optimizer.state_dict()["state"].values()})
