"""ResNet-50."""

from shared import DEVICE, class_loss, images, train
from torch import nn

SIZES = (128, 224, 64, (3, 4, 6, 3), 1000) if DEVICE == "cuda" else (2, 32, 8, (1, 1, 1, 1), 10)
BATCH, SIDE, WIDTH, DEPTHS, CLASSES = SIZES


def convolution(channels, out, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(channels, out, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.reduce = convolution(channels, width, 1)
        self.convolve = convolution(width, width, 3, stride)
        self.expand = convolution(width, out, 1)
        self.shortcut = nn.Identity() if channels == out else convolution(channels, out, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        inner = self.relu(self.reduce(x))
        inner = self.relu(self.convolve(inner))
        return self.relu(self.expand(inner) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, WIDTH, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], WIDTH
        for stage, depth in enumerate(DEPTHS):
            for number in range(depth):
                blocks.append(Bottleneck(channels, WIDTH << stage, 2 if stage and not number else 1))
                channels = 4 * WIDTH << stage
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(channels, CLASSES)

    def forward(self, x):
        return self.classes(self.blocks(self.stem(x)).mean((2, 3)))


network, loss_of = ResNet, class_loss


def batch():
    return images(BATCH, SIDE, CLASSES)


if __name__ == "__main__":
    train(network, batch, loss_of)
