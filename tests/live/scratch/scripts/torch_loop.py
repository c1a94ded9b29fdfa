"""Saves the best model and the last states by torch.save, and reads them again."""

import io
import os
import sys
from pathlib import Path

import torch
from torch import save

torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = float("inf")
for epoch in range(4):
    loss = model(torch.randn(8, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")
    if loss.item() < best:
        best, weights = loss.item(), {name: one.clone() for name, one in model.state_dict().items()}
        torch.save(obj=weights, f=Path("best.pt"))
loaded = torch.load(Path("best.pt"))
assert all(loaded[name].equal(one) for name, one in weights.items())
assert torch.load(f=str(Path("last.pt").absolute()))["epoch"] == 3
with Path(os.devnull).open("wb") as sink:
    torch.save(weights, sink)
buffer = io.BytesIO()
torch.save(weights, buffer)
buffer.seek(0)
assert torch.load(buffer).keys() == weights.keys()
scripted = torch.jit.script(model)
torch.jit.save(scripted, "scripted.pt")
scripted.save("scripted_too.pt")
torch.jit.trace(model, torch.ones(1, 3)).save("traced.pt")
for name in ("scripted.pt", "scripted_too.pt", "traced.pt"):
    assert torch.jit.load(name)(torch.ones(3)).equal(model(torch.ones(3)))
assert save is torch.save
assert save.__name__ == "save"
assert save.__doc__
