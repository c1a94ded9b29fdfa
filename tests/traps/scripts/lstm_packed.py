"""An LSTM over packed sequences, whose state goes from batch to batch, detached."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(20, 8), nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 20)

    def forward(self, tokens, lengths, state=None):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        packed, state = self.lstm(packed, state)
        outputs, lengths = pad_packed_sequence(packed, batch_first=True)
        return self.head(outputs), lengths, state


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
tokens, lengths, state = torch.randint(0, 20, (4, 6)), torch.tensor([6, 3, 5, 2]), None
for step in range(6):
    outputs, sizes, state = model(tokens, lengths, state)
    state = tuple(one.detach() for one in state)
    loss = nn.functional.cross_entropy(outputs.reshape(-1, 20), tokens.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.1f}", outputs.dtype, sizes.tolist(), [one.dtype for one in state])
