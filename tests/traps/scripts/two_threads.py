"""Two threads train two models at the same time, and a third evaluates one of them under no_grad."""

import threading

import torch
from torch import nn

barrier = threading.Barrier(3)
said = {}


def train(name, model, kind):
    optimizer = kind(model.parameters(), lr=0.01)
    inputs = torch.ones(16, 4)
    for _ in range(30):
        barrier.wait()
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    said[name] = (loss.dtype, list(model.state_dict()), torch.is_autocast_enabled("cpu"))


def evaluate(model):
    dtypes = set()
    for _ in range(30):
        barrier.wait()
        with torch.no_grad():
            dtypes.add(model(torch.ones(2, 4)).dtype)
    said["evaluated"] = dtypes


torch.manual_seed(0)
one, two = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)), nn.Sequential(nn.Linear(4, 16), nn.Linear(16, 1))
threads = [
    threading.Thread(target=train, args=("one", one, torch.optim.AdamW)),
    threading.Thread(target=train, args=("two", two, torch.optim.SGD)),
    threading.Thread(target=evaluate, args=(one,)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name in sorted(said):
    print(name, said[name])
print(nn.Module.__call__.__name__, "__call__" in vars(nn.Module))
