"""Weights and gradients of a convolution network as one vector and back, by torch's utilities; then pruned."""

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, prune, vector_to_parameters

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(2, 3, 8, 8)
for step in range(8):
    optimizer.zero_grad()
    model(images).square().mean().backward()
    optimizer.step()
    weights = parameters_to_vector(model.parameters())
    gradients = parameters_to_vector([one.grad for one in model.parameters()])
    if step > 3:
        vector_to_parameters(weights * 0.9, model.parameters())
    print(step, weights.shape, gradients.shape, [round(one, 1) for one in weights[::16].tolist()])
prune.l1_unstructured(model[0], "weight", amount=0.5)
print((model[0].weight == 0).sum())
