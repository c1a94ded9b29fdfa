"""A custom autograd.Function that comes into use only later, and whose backward bears no mixture of dtypes."""

import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, weight):
        ctx.save_for_backward(inputs, weight)
        return inputs @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        inputs, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ inputs


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.weight = torch.nn.Parameter(torch.randn(1, 8))
        self.late = False

    def forward(self, inputs):
        hidden = self.first(inputs).relu()
        return Product.apply(hidden, self.weight) if self.late else hidden @ self.weight.t()


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(8, 4)
for step in range(7):
    model.late = step > 4
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.dtype)
