"""Children by fork train models of their own, one of them begun by the parent."""

import multiprocessing
import os

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(16, 4)


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    return f"{loss.item():.1f} {loss.dtype} {list(model.state_dict())} {optimizer.param_groups[0]['lr']}"


def child(pipe):
    pipe.send(train(model, optimizer, 4))
    fresh = torch.nn.Linear(4, 1)
    pipe.send(train(fresh, torch.optim.SGD(fresh.parameters(), lr=0.01), 4))


print(train(model, optimizer, 4))
context = multiprocessing.get_context("fork")
ends = [context.Pipe() for _ in range(2)]
children = [context.Process(target=child, args=(end,)) for _, end in ends]
for one in children:
    one.start()
for here, _ in ends:
    print(here.recv(), here.recv())
for one in children:
    one.join()
print([one.exitcode for one in children], os.getpid() == multiprocessing.current_process().pid)
