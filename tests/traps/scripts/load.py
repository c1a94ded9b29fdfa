"""Goes on from what `save.py` saved: resumes from the checkpoint, or trains one of the whole models on."""

import pickle
import sys

import torch
from torch import nn

images, labels = torch.ones(8, 3, 8, 8), torch.zeros(8, dtype=torch.int64)
if "whole" in sys.argv:
    with open("model.pickle", "rb") as file:
        pickled = pickle.load(file)
    model = torch.load("model.pt", weights_only=False)
    print(torch.equal(model(images), pickled(images)), sorted(vars(model)) == sorted(vars(pickled)))
    print({name: (value.dtype, tuple(value.shape)) for name, value in model.state_dict().items()})
else:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1)
if "whole" not in sys.argv:
    saved = torch.load("checkpoint.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
for step in range(5):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype, bool(loss.isfinite()))
print(optimizer.state_dict()["param_groups"], "gputune" in sys.modules)
print([state["step"] for state in optimizer.state_dict()["state"].values()])
