"""torch.func: functional_call, grad and vmap of the model in the middle of training."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
inputs = torch.randn(8, 4)


def loss_of(parameters, one):
    return functional_call(model, parameters, (one[None],)).square().sum()


for step in range(6):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2 == 0:
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        each = vmap(grad(loss_of), in_dims=(None, 0))(parameters, inputs)
        print(step, {name: (value.dtype, tuple(value.shape)) for name, value in each.items()})
        with torch.no_grad():
            ones = functional_call(model, {name: torch.ones_like(one) for name, one in parameters.items()}, (inputs,))
            print(ones.flatten()[:3])
