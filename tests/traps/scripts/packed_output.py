"""A model that returns a packed sequence, a named tuple with a constructor of its own."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

torch.manual_seed(0)
model = nn.GRU(4, 8)
head = nn.Linear(8, 1)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
packed = pack_sequence([torch.randn(length, 4) for length in (5, 3, 1)])
for step in range(6):
    outputs, state = model(packed)
    padded, lengths = pad_packed_sequence(outputs)
    loss = head(padded).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, type(outputs).__name__, outputs.data.dtype, state.dtype, lengths.tolist(), loss.dtype)
