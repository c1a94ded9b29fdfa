"""An image classifier: a small residual network on made-up pictures, which a DataLoader serves.

    gputune check
    gputune tune -o profile.yaml -- python classifier.py
    gputune apply profile.yaml -- python classifier.py

As it is, it trains in seconds on two CPUs; on a GPU add --large to each command, which also gives the DataLoader
workers. Nothing here knows of gputune: mixed precision, channels_last, the fused optimizer and torch.compile are left
for it to find, and the workers where there are none.
"""

import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

CLASSES = 10
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Pictures(Dataset):
    """Stripes whose direction is the class, and whose width, place and noise differ from picture to picture."""

    def __init__(self, count, size, seed):
        self.count, self.seed = count, seed
        self.rows, self.columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        # The same picture for the same number, in whichever worker it is made.
        random = torch.Generator().manual_seed(self.seed * self.count + number)
        label = number % CLASSES
        angle = math.pi * label / CLASSES
        width, place = torch.rand(2, generator=random).tolist()
        along = self.rows * math.sin(angle) + self.columns * math.cos(angle)
        stripes = torch.sin(along * (0.5 + width) + 2 * math.pi * place)
        return stripes + torch.randn((3, *stripes.shape), generator=random), label


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        out = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(x + self.norms[1](self.second(out)))


class Classifier(nn.Module):
    """Stages of blocks, each with half the resolution of the one before and twice its channels."""

    def __init__(self, channels, stages, blocks):
        super().__init__()
        layers = [nn.Conv2d(3, channels, 3, padding=1)]
        for stage in range(stages):
            wide = channels << stage
            layers += [Block(wide) for _ in range(blocks)]
            layers += [nn.Conv2d(wide, 2 * wide, 2, stride=2)]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(channels << stages, CLASSES)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


def train(model, loader, optimizer):
    """Train for one epoch; the mean loss, and milliseconds a step."""
    model.train()
    total, start = 0.0, time.perf_counter()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images.to(DEVICE)), labels.to(DEVICE))
        loss.backward()
        optimizer.step()
        total += loss.detach()  # stays on the device: reading it would wait for every step
    return float(total) / len(loader), (time.perf_counter() - start) / len(loader) * 1000


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(images.to(DEVICE)).argmax(1) == labels.to(DEVICE)).sum() for images, labels in loader)
    return float(right) / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--large", action="store_true", help="a network and pictures that fill a GPU")
    wanted = parser.parse_args()
    size, batch, shape, workers = (128, 256, (64, 4, 3), 8) if wanted.large else (16, 16, (8, 2, 1), 0)

    torch.manual_seed(0)
    model = Classifier(*shape).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Pictures(100 * batch, size, seed=1), batch, shuffle=True, num_workers=workers)
    validation = DataLoader(Pictures(20 * batch, size, seed=2), batch, num_workers=workers)
    for epoch in range(wanted.epochs):
        loss, milliseconds = train(model, loader, optimizer)
        print(
            f"epoch {epoch}: loss {loss:.3f}, {milliseconds:.1f} ms a step, accuracy {accuracy(model, validation):.0%}"
        )


if __name__ == "__main__":
    main()
