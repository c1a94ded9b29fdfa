"""What a program would lose if a call or its backward pass were made once more, and not all of it undone."""

import sys

import torch
from torch import nn
from torch.amp import custom_bwd, custom_fwd

form = sys.argv[1]
generator = torch.Generator().manual_seed(1)
batches = iter(range(100))
hook_calls = []


class Function(torch.autograd.Function):
    """Forgets what it keeps as its backward pass uses it, which also counts in a buffer."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, inputs, times):
        ctx.stack, ctx.times = [inputs], times
        return inputs.square()

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        ctx.times += 1
        return 2 * gradient * ctx.stack.pop(), None


class Checkpoint(torch.autograd.Function):
    """Computes a layer again in its backward pass, and begins one behind it."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, inputs, layer):
        ctx.save_for_backward(inputs)
        ctx.layer = layer
        with torch.no_grad():
            return layer(inputs)

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        inputs = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            torch.autograd.backward(ctx.layer(inputs), gradient)
        return inputs.grad, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.policy, self.value = (nn.Linear(8, 8) for _ in range(4))
        self.calls = []
        self.register_buffer("times", torch.ones(()))

    def forward(self, x, *more):
        self.calls.append(len(x))
        hidden = self.first(x).float()
        if form == "a buffer in a graph":
            self.times += 1
            hidden = hidden / self.times
        if form == "an iterator among the inputs":
            self.calls[-1] = next(more[0])
        if form == "a generator among the inputs":
            hidden = hidden + torch.rand(8, generator=more[0])
        if form == "a function that forgets":
            hidden = Function.apply(hidden, self.times)
        hidden = Checkpoint.apply(hidden, self.second) if form == "an own checkpoint" else self.second(hidden)
        return self.policy(hidden), self.value(hidden.detach() if form == "a function that forgets" else hidden)


torch.manual_seed(0)
model = Net()
actor = torch.optim.SGD(model.policy.parameters(), lr=0.01)
others = [one for name, one in model.named_parameters() if not name.startswith("policy")]
critic = torch.optim.SGD(others, lr=0.01)
if form == "hooks on weights":
    model.first.weight.register_hook(hook_calls.append)
inputs = {"an iterator among the inputs": [batches], "a generator among the inputs": [generator]}.get(form, [])
finished, are_kept = [], []
for _ in range(10):
    policy, value = model(torch.randn(4, 8), *inputs)
    critic.zero_grad()
    policy.square().mean().backward(retain_graph=True)
    if form == "a list that is taken off":
        rows, model.calls = model.calls, []
        rows.append("end")
        finished.append(rows)
    if form == "a large list":
        model.calls += range(600)
    gradients = [one.grad.clone() for one in others[:4]]
    actor.step()
    are_kept.append(all(map(torch.equal, gradients, [one.grad for one in others[:4]])))
    value.square().mean().backward()
    critic.step()
print(finished, len(model.calls), model.calls[:10], are_kept, len(hook_calls))
print(model.times.item(), torch.rand(1, generator=generator).item(), next(batches))
