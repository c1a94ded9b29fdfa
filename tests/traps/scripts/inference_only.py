"""A program that never trains: inference under no_grad and inference_mode."""

import torch
from torch import nn

call = nn.Module.__call__
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
with torch.no_grad():
    print(model(torch.ones(2, 4)))
with torch.inference_mode():
    print(model(torch.ones(2, 4)))
print(model(torch.ones(2, 4)))
print(nn.Module.__call__ is call is nn.Module._wrapped_call_impl, model._compiled_call_impl)
