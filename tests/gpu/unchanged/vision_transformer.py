"""ViT-B/16, a vision transformer."""

import torch
from shared import DEVICE, Block, class_loss, images, train
from torch import nn

SIZES = (128, 224, 16, 768, 12, 1000) if DEVICE == "cuda" else (2, 32, 8, 64, 2, 10)
BATCH, SIDE, PATCH, WIDTH, DEPTH, CLASSES = SIZES


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.summary = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block(WIDTH, causal=False) for _ in range(DEPTH)), nn.LayerNorm(WIDTH))
        self.classes = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.summary.expand(len(x), -1, -1), patches], dim=1) + self.places
        return self.classes(self.blocks(x)[:, 0])


network, loss_of = VisionTransformer, class_loss


def batch():
    return images(BATCH, SIDE, CLASSES)


if __name__ == "__main__":
    train(network, batch, loss_of)
