"""The model is moved to double precision in the middle of training."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
inputs = torch.randn(16, 4)


def train(optimizer):
    for _ in range(4):
        outputs = model(inputs)
        loss = outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(outputs.dtype, loss.dtype, {parameter.dtype for parameter in model.parameters()})


optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
train(optimizer)
model.double()
inputs = inputs.double()
train(torch.optim.AdamW(model.parameters(), lr=0.01))
