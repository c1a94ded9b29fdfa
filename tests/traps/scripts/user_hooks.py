"""The program's own hooks, on the model and inside it: each is called as often as before, with what it expects."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
called = []
model.register_forward_pre_hook(lambda module, inputs: called.append(("before", inputs[0].dtype)))
model.register_forward_hook(lambda module, inputs, output: called.append(("after", tuple(output.shape))))
model.register_full_backward_hook(lambda module, inputs, outputs: called.append(("backward", len(outputs))))
model[0].register_forward_hook(lambda module, inputs, output: called.append(("inner", tuple(output.shape))))
model[2].register_full_backward_hook(lambda module, inputs, outputs: called.append(("inner backward",)))
model[2].weight.register_hook(lambda gradient: called.append(("gradient", gradient.dtype)))
model[2].weight.register_post_accumulate_grad_hook(lambda weight: called.append(("grad", weight.grad.dtype)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
optimizer.register_step_post_hook(lambda *_: called.append(("step",)))
inputs = torch.randn(8, 4)
for step in range(5):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, called)
    called.clear()
print(len(model._forward_hooks), len(model._forward_pre_hooks), len(optimizer._optimizer_step_post_hooks))
