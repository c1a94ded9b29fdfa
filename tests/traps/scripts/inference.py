"""A program that never trains, or takes a single step: inference under no_grad and inference_mode."""

import sys

import torch
from torch import nn

call = nn.Module.__call__
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
if "step" in sys.argv:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
with torch.no_grad():
    print(model(torch.ones(2, 4)))
with torch.inference_mode():
    print(model(torch.ones(2, 4)))
print(model(torch.ones(2, 4)))
if "step" not in sys.argv:
    print(nn.Module.__call__ is call is nn.Module._wrapped_call_impl, model._compiled_call_impl)
