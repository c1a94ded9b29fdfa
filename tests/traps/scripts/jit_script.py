"""torch.jit.script of the model in the middle of training, and a model that is scripted from the start."""

import io
import warnings

import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
inputs = torch.randn(16, 4)


def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    print(type(model).__name__, loss.dtype)
    return optimizer


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def forward(self, inputs):
        return self.layers(inputs)


model = Net()
optimizer = train(model)
scripted = torch.jit.script(model)
buffer = io.BytesIO()
torch.jit.save(scripted, buffer)
buffer.seek(0)
with torch.no_grad():
    print(torch.equal(torch.jit.load(buffer)(inputs), model(inputs)), scripted(inputs).dtype)
print("autocast" in str(scripted.inlined_graph), "bfloat16" in str(scripted.inlined_graph).lower())
train(scripted)
train(model)
