"""The program asserts dtypes and layouts outside of the model."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images = torch.randn(4, 3, 8, 8, requires_grad=True)
for step in range(6):
    outputs = model(images)
    loss = nn.functional.mse_loss(outputs, images)
    optimizer.zero_grad()
    loss.backward()
    for tensor in (outputs, loss, images.grad, *(parameter.grad for parameter in model.parameters())):
        assert tensor.dtype == torch.float32
    assert outputs.is_contiguous()
    assert all(parameter.grad.stride() == parameter.stride() for parameter in model.parameters())
    optimizer.step()
    print(step, images.grad.stride(), outputs.stride())
