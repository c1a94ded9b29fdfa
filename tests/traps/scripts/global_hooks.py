"""Hooks on all modules and all optimizers, as profilers set them; the model's output is replaced by one."""

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
called = []
register_module_forward_pre_hook(lambda module, inputs: called.append(type(module).__name__))
register_module_forward_hook(lambda module, inputs, output: called.append("after " + type(module).__name__))
register_optimizer_step_post_hook(lambda *_: called.append("step"))
model.register_forward_hook(lambda module, inputs, output: (output, output.detach().double()))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(8, 4)
for step in range(5):
    output, precise = model(inputs)
    optimizer.zero_grad()
    output.square().mean().backward()
    optimizer.step()
    print(step, called, output.dtype, precise.dtype)
    called.clear()
