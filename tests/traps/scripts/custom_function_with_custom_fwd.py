"""A custom autograd.Function that is ready for autocast."""

import torch
from torch.amp import custom_bwd, custom_fwd


class Product(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, inputs, weight):
        ctx.save_for_backward(inputs, weight)
        return inputs @ weight.t()

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        inputs, weight = ctx.saved_tensors
        assert gradient.dtype == inputs.dtype == weight.dtype == torch.float32
        return gradient @ weight, gradient.t() @ inputs


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.weight = torch.nn.Parameter(torch.randn(1, 8))

    def forward(self, inputs):
        return Product.apply(self.first(inputs).relu(), self.weight)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(8, 4)
for step in range(5):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", loss.dtype)
