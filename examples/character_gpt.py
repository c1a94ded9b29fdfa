"""A GPT of characters, which learns to write Python: its text is the source of the standard library's argparse.

    gputune check
    gputune tune -o profile.yaml -- python character_gpt.py
    gputune apply profile.yaml -- python character_gpt.py

As it is, it trains in seconds on two CPUs; on a GPU add --large to each command. It trains in plain FP32: TF32,
bfloat16, the fused optimizer and torch.compile are left for gputune to find.
"""

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.inputs(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


class CharacterGPT(nn.Module):
    def __init__(self, alphabet, length, width, heads, depth):
        super().__init__()
        self.length = length
        self.characters, self.places = nn.Embedding(alphabet, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)), nn.LayerNorm(width))
        self.head = nn.Linear(width, alphabet)

    def forward(self, text):
        places = torch.arange(text.shape[1], device=text.device)
        return self.head(self.blocks(self.characters(text) + self.places(places)))


def batch_of(text, count, length):
    """Pieces of the text, and each character's successor."""
    starts = torch.randint(len(text) - length, (count, 1))
    pieces = text[starts + torch.arange(length + 1)].to(DEVICE)
    return pieces[:, :-1], pieces[:, 1:]


@torch.no_grad()
def written(model, alphabet, start, count):
    """`start` and the characters that the model writes after it."""
    text = torch.tensor([[alphabet.index(character) for character in start]], device=DEVICE)
    for _ in range(count):
        chances = model(text[:, -model.length :])[:, -1].softmax(-1)
        text = torch.cat([text, torch.multinomial(chances, 1)], 1)
    return "".join(alphabet[number] for number in text[0].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--large", action="store_true", help="a network that fills a GPU")
    wanted = parser.parse_args()
    batch, length, width, heads, depth = (16, 512, 768, 12, 12) if wanted.large else (8, 64, 64, 2, 2)

    torch.manual_seed(0)
    source = Path(argparse.__file__).read_text(encoding="utf-8")
    alphabet = sorted(set(source))
    text = torch.tensor([alphabet.index(character) for character in source])
    model = CharacterGPT(len(alphabet), length, width, heads, depth).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4 if wanted.large else 3e-3)

    total, start = 0.0, time.perf_counter()
    every = max(1, wanted.steps // 6)
    for step in range(1, wanted.steps + 1):
        inputs, targets = batch_of(text, batch, length)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        total += loss.detach()  # stays on the device: reading it would wait for every step
        if step % every == 0:
            mean = float(total) / every
            print(f"step {step}: loss {mean:.3f}, {(time.perf_counter() - start) / every * 1000:.1f} ms a step")
            total, start = 0.0, time.perf_counter()
    model.eval()
    print(written(model, alphabet, "def ", 200))


if __name__ == "__main__":
    main()
