"""An LSTM of two layers over tokens with AdamW."""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, WIDTH, DEPTH, LENGTH, WORDS = (128, 1024, 2, 128, 8192) if DEVICE == "cuda" else (8, 128, 1, 16, 512)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, DEPTH, batch_first=True)
        self.words = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        states, _ = self.lstm(self.tokens(x))
        return self.words(states)


def network():
    return Recurrent()


def batch():
    return torch.randint(WORDS, (2, BATCH, LENGTH), device=DEVICE)


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def optimizer_for(parameters, **more):
    return torch.optim.AdamW(parameters, lr=1e-4, **more)
