"""A custom autograd.Function that does not say how it behaves under autocast: its backward wants one dtype."""

import torch


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
    print(step, f"{loss.item():.4f}")
