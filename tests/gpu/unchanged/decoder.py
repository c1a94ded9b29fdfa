"""A decoder of twelve blocks with causal attention, as in GPT-2, with its vocabulary."""

import os

import torch
from blocks import log, steps
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = (8, 1024, 768, 12, 50257) if DEVICE == "cuda" else (2, 16, 64, 2, 257)
BATCH, LENGTH, WIDTH, DEPTH, WORDS = SIZES
HEAD = 64


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH), SelfAttention())
        self.mlp = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)), nn.LayerNorm(WIDTH))
        self.words = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        places = self.places(torch.arange(x.shape[1], device=x.device))
        return self.words(self.blocks(self.tokens(x) + places))


def network():
    return Decoder()


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
