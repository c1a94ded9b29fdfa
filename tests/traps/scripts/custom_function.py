"""A custom autograd.Function that does not say how it behaves under autocast: its backward wants one dtype. It may come
into use only later, be ready for autocast, or be so in its forward alone.
"""

import sys

import torch
from torch.amp import custom_bwd, custom_fwd


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, weight):
        ctx.save_for_backward(inputs, weight)
        return inputs @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        inputs, weight = ctx.saved_tensors
        assert gradient.dtype == inputs.dtype == weight.dtype
        return gradient @ weight, gradient.t() @ inputs


class Ready(torch.autograd.Function):
    forward = staticmethod(custom_fwd(Product.forward, device_type="cpu", cast_inputs=torch.float32))
    backward = staticmethod(custom_bwd(Product.backward, device_type="cpu"))


class Half(torch.autograd.Function):
    """Its forward is ready for autocast, and its backward is not."""

    forward = staticmethod(custom_fwd(Product.forward, device_type="cpu"))
    backward = staticmethod(Product.backward)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.weight = torch.nn.Parameter(torch.randn(1, 8))

    def forward(self, inputs):
        hidden = self.first(inputs).relu()
        if late and step < 5:
            return hidden @ self.weight.t()
        return (Half if half else Ready if ready else Product).apply(hidden, self.weight)


late, ready, half = ("late" in sys.argv, "ready" in sys.argv, "half" in sys.argv)
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(8, 4)
for step in range(7):
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.{1 if late or ready else 4}f}", loss.dtype)
