"""A model that keeps a tensor in an attribute, for a loss and for an evaluation that read it there, and another one in
a buffer; and that returns its input.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 2), nn.Linear(2, 4)
        self.register_buffer("center", torch.zeros(2))

    def forward(self, inputs):
        self.codes = self.encoder(inputs)
        self.center = self.codes.detach().mean(0)
        return inputs, self.decoder(self.codes)


torch.manual_seed(0)
inputs = torch.randn(8, 4)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(5):
    same, outputs = model(inputs)
    loss = nn.functional.mse_loss(outputs, inputs) + 0.1 * nn.functional.l1_loss(model.codes, torch.zeros(8, 2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(same is inputs, outputs.dtype, loss.dtype, model.codes.detach().numpy().dtype)
print({name: value.dtype for name, value in model.state_dict().items()})
