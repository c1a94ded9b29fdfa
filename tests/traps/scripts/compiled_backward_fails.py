"""An operation whose gradient comes in another layout than it tells torch.compile, as some of torch's own do."""

import torch
from torch import nn


@torch.library.custom_op("traps::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("traps::gradient", mutates_args=())
def gradient(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).t().contiguous().t()


double.register_fake(torch.empty_like)
gradient.register_fake(torch.empty_like)
double.register_autograd(lambda _, grad: gradient(grad.contiguous()))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(8, 1)
        self.dropout = nn.Dropout()

    def forward(self, images):
        return self.two(self.dropout(double(self.norm(self.one(images)).flatten(1).relu())))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
images = torch.randn(32, 1, 4, 4)
losses = []
for _ in range(9):
    loss = (model(images) - 3).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"falls: {losses[-1] < losses[0]}, batches seen: {model.norm.num_batches_tracked}")
print(f"next random number {torch.rand(()):.3f}")
