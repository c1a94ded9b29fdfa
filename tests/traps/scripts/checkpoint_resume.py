"""Resumes from the checkpoint of another run, and goes on."""

import torch
from torch import nn

saved = torch.load("checkpoint.pt")
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1)
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
torch.manual_seed(1)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for step in range(5):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype, bool(loss.isfinite()))
print(optimizer.state_dict()["param_groups"])
print([state["step"] for state in optimizer.state_dict()["state"].values()])
