"""torch.jit.trace of the model in the middle of training: the trace holds no cast and no autocast."""

import warnings

import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images = torch.randn(4, 3, 8, 8)
for step in range(6):
    optimizer.zero_grad()
    loss = model(images).square().mean()
    loss.backward()
    optimizer.step()
    if step in (1, 2, 4):
        traced = torch.jit.trace(model, images)
        nodes = sorted({node.kind() for node in traced.inlined_graph.nodes()})
        print(step, traced(images).dtype, nodes, torch.allclose(traced(images), model(images), atol=0.05))
print(loss.dtype)
