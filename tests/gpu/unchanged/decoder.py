"""A decoder of twelve blocks with causal attention, as in GPT-2, with its vocabulary."""

import torch
from shared import DEVICE, Block, class_loss, tokens, train
from torch import nn

SIZES = (8, 1024, 768, 12, 50257) if DEVICE == "cuda" else (2, 16, 64, 2, 257)
BATCH, LENGTH, WIDTH, DEPTH, WORDS = SIZES


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH, causal=True) for _ in range(DEPTH)), nn.LayerNorm(WIDTH))
        self.words = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        places = self.places(torch.arange(x.shape[1], device=x.device))
        return self.words(self.blocks(self.tokens(x) + places))


network, loss_of = Decoder, class_loss


def batch():
    return tokens(BATCH, LENGTH, WORDS)


if __name__ == "__main__":
    train(network, batch, loss_of)
