"""A checkpoint of a model and of its optimizer, as one resumes from; and whole models, not only their weights."""

import copy
import pickle

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
for _ in range(6):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
saved = torch.load("checkpoint.pt")
print({name: (value.dtype, tuple(value.shape)) for name, value in saved["model"].items()})
print(saved["optimizer"]["param_groups"])
for number, state in saved["optimizer"]["state"].items():
    print(number, {name: (value.dtype, tuple(value.shape), value.device.type) for name, value in state.items()})
    print(state["step"])
torch.save(model, "model.pt")
with open("model.pickle", "wb") as file:
    pickle.dump(model, file)
for one in (copy.deepcopy(model), copy.copy(model), torch.load("model.pt", weights_only=False)):
    print(type(one).__name__, sorted(vars(one)), list(one.state_dict()))
    with torch.no_grad():
        print(torch.equal(one(images), model(images)), one(images).dtype)
print(b"gputune" in pickle.dumps(model), repr(model))
