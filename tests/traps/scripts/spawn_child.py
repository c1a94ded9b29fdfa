"""A child by spawn, a fresh interpreter, gets the model from its parent, trains it and sends it back."""

import torch
import torch.multiprocessing


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    inputs = torch.ones(16, 4)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    return loss


def child(queue, model, done):
    print(train(model, 5).dtype, flush=True)
    queue.put((type(model).__name__, {name: value.dtype for name, value in model.state_dict().items()}))
    done.wait()


if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    print(train(model, 5).dtype, flush=True)
    queue, done = context.SimpleQueue(), context.Event()
    process = context.Process(target=child, args=(queue, model, done))
    process.start()
    print(queue.get())
    done.set()
    process.join()
    print(process.exitcode)
