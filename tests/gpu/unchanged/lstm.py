"""An LSTM of two layers over tokens."""

from shared import DEVICE, class_loss, tokens, train
from torch import nn

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


network, loss_of = LanguageModel, class_loss


def batch():
    return tokens(BATCH, LENGTH, WORDS)


if __name__ == "__main__":
    train(network, batch, loss_of)
