"""What the scripts of `unchanged/` share, as a user's scripts share a module: data, blocks, the optimizer, the loop."""

import os

import torch
from blocks import log, steps
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HEAD = 64


def images(batch, side, classes):
    """Images of noise on stripes, the closer the higher the number of the class."""
    y = torch.randint(classes, (batch,), device=DEVICE)
    angles = torch.linspace(0, 3, side, device=DEVICE) * (y + 1)[:, None]
    return torch.randn(batch, 3, side, side, device=DEVICE) + angles.sin()[:, None, None, :], y


def tokens(batch, length, words):
    """Tokens, the rarer the higher their number, and those that follow them."""
    text = (words ** torch.rand(batch, length + 1, device=DEVICE)).long() - 1
    return text[:, :-1], text[:, 1:]


class SelfAttention(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.causal = causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), SelfAttention(width, causal))
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


def class_loss(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())


def optimizer_for(parameters, **more):
    return torch.optim.AdamW(parameters, lr=1e-4, **more)


def train(network, batch, loss_of):
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
