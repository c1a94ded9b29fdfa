"""An LSTM of two layers over tokens."""

import os

import torch
from blocks import log, steps
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, LENGTH, WIDTH, DEPTH, WORDS = (64, 128, 512, 2, 10000) if DEVICE == "cuda" else (2, 16, 32, 1, 257)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, DEPTH, batch_first=True)
        self.words = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        states, _ = self.lstm(self.tokens(x))
        return self.words(states)


def network():
    return LanguageModel()


def batch():
    """Tokens, the rarer the higher their number, and those that follow them."""
    text = (WORDS ** torch.rand(BATCH, LENGTH + 1, device=DEVICE)).long() - 1
    return text[:, :-1], text[:, 1:]


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def optimizer_for(parameters, **more):
    return torch.optim.AdamW(parameters, lr=1e-4, **more)


if __name__ == "__main__":
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    model = network().to(DEVICE)
    optimizer = optimizer_for(model.parameters())
    for _ in steps():
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        log(loss)
