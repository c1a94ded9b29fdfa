"""ViT-B/16, a vision transformer."""

import os

import torch
from blocks import log, steps
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = (128, 224, 16, 768, 12, 1000) if DEVICE == "cuda" else (2, 32, 8, 64, 2, 10)
BATCH, SIDE, PATCH, WIDTH, DEPTH, CLASSES = SIZES
HEAD = 64


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
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


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.summary = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)), nn.LayerNorm(WIDTH))
        self.classes = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.summary.expand(len(x), -1, -1), patches], dim=1) + self.places
        return self.classes(self.blocks(x)[:, 0])


def network():
    return VisionTransformer()


def batch():
    """Images of noise on stripes, the closer the higher the number of the class."""
    y = torch.randint(CLASSES, (BATCH,), device=DEVICE)
    angles = torch.linspace(0, 3, SIDE, device=DEVICE) * (y + 1)[:, None]
    return torch.randn(BATCH, 3, SIDE, SIDE, device=DEVICE) + angles.sin()[:, None, None, :], y


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets)


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
