"""The model is built and trained in a thread; the main thread then goes on with it."""

import threading

import torch

box = {}


def train(model, optimizer):
    inputs = torch.ones(16, 4)
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    print(threading.current_thread().name, loss.dtype)


def work():
    torch.manual_seed(0)
    box["model"] = torch.nn.Linear(4, 1)
    box["optimizer"] = torch.optim.AdamW(box["model"].parameters(), lr=0.01)
    train(box["model"], box["optimizer"])


thread = threading.Thread(target=work, name="trainer")
thread.start()
thread.join()
train(box["model"], box["optimizer"])
print(torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"))
