"""In what share whole numbers of models' outputs are others in bfloat16 at equal weights: a line for each program.

`docs/measuring.md` has the result, on which `gputune.live.equal_weights.NEAR_TIES` rests.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from trials import guard_cases
from trials.guard_cases import Attention, Net, entropy, fit, mlp, mse, quantised, quantised_in_half, ran, tokens_loss

SEEDS = range(2)
STEPS = 4


def labels(count: int, width: int = 256) -> tuple[Any, ...]:
    def body(m: Any, x: Any) -> Any:
        logits = m.net(x)
        return logits, logits.argmax(-1), logits.topk(5).indices

    return (
        Net(body, net=mlp(64, width, width, count)),
        lambda: (torch.randn(512, 64), torch.randint(count, (512,))),
        entropy,
    )


def tokens(count: int) -> tuple[Any, ...]:
    def body(m: Any, given: Any) -> Any:
        logits = m.head(m.norm(m.blocks(m.embed(given))))
        return logits, logits.argmax(-1)

    def data() -> tuple[Any, Any]:
        text = torch.randint(count, (16, 33))
        return text[:, :-1], text[:, 1:]

    parts = {"embed": nn.Embedding(count, 64), "norm": nn.LayerNorm(64), "head": nn.Linear(64, count, bias=False)}
    return Net(body, blocks=nn.Sequential(Attention(64), Attention(64)), **parts), data, tokens_loss


def experts(count: int, chosen: int) -> tuple[Any, ...]:
    def body(m: Any, x: Any) -> Any:
        h = torch.relu(m.first(x))
        weights, places = m.router(h).softmax(-1).topk(chosen, -1)
        found = torch.stack([one(h) for one in m.experts], 1)
        taken = found.gather(1, places[..., None].expand(-1, -1, 32))
        return m.last((taken * weights[..., None]).sum(1)), places

    parts = {"first": nn.Linear(64, 128), "router": nn.Linear(128, count), "last": nn.Linear(32, 1)}
    model = Net(body, experts=nn.ModuleList([nn.Linear(128, 32) for _ in range(count)]), **parts)
    return model, lambda: ((x := torch.randn(512, 64)), x[:, :1].sin()), mse


def nearest(count: int, apart: float, *, in_fp32: bool = False) -> tuple[Any, ...]:
    """Codes that are so far apart in each of 32 dimensions."""

    def body(m: Any, x: Any) -> Any:
        z = m.encode(x)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=torch.is_autocast_enabled("cpu") and not in_fp32):
            z, codes = z.float() if in_fp32 else z, m.codes.weight
            found = (z.square().sum(1, keepdim=True) - 2 * z @ codes.T + codes.square().sum(1)).argmin(1)
        return m.decode(z + (m.codes(found) - z).detach()), found

    model = Net(body, encode=mlp(64, 256, 32), decode=mlp(32, 256, 64), codes=nn.Embedding(count, 32))
    nn.init.uniform_(model.codes.weight, -apart, apart)
    return model, lambda: ((x := torch.randn(512, 64)), x), mse


def scalars(body: Any) -> tuple[Any, ...]:
    model = Net(body, encode=mlp(64, 256, 256, 4, act=nn.GELU), decode=mlp(4, 256, 64, act=nn.GELU))

    def data() -> tuple[Any, Any]:
        x = torch.randn(512, 64) * torch.cat([torch.ones(4), torch.full((60,), 0.1)])
        return x, x

    return model, data, mse


PROGRAMS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "labels: 10": lambda: labels(10),
    "labels: 1,000": lambda: labels(1000),
    "labels: 50,000": lambda: labels(50_000, 64),
    "token ids: 1,000": lambda: tokens(1000),
    "token ids: 50,257": lambda: tokens(50_257),
    "experts: 2 of 8": lambda: experts(8, 2),
    "experts: 2 of 64": lambda: experts(64, 2),
    "experts: 8 of 64": lambda: experts(64, 8),
    "nearest of 512 codes": lambda: nearest(512, 0.3),
    "nearest of 1,024 close codes": lambda: nearest(1024, 1 / 1024),
    "nearest of 1,024 close codes, in FP32": lambda: nearest(1024, 1 / 1024, in_fp32=True),
    "finite scalars": lambda: scalars(quantised_in_half),
    "finite scalars, in FP32": lambda: scalars(quantised),
}


def shares(make: Callable[[], tuple[Any, ...]]) -> Iterator[list[float]]:
    """For each seed, in percent for each output of whole numbers."""

    def train(steps: int) -> None:
        model, data, loss = make()
        fit(steps, model, data, lambda found, y: loss(found[0], y))

    for seed in SEEDS:
        plain, half = (ran(train, settings, shift=seed).recorded for settings in (None, {"amp_dtype": "bfloat16"}))
        pairs = [pair for pair in zip(plain.outputs, half.outputs, strict=True) if pair[0].is_whole]
        yield [
            100 * float((torch.tensor(one.sample) != torch.tensor(other.sample)).float().mean()) for one, other in pairs
        ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    with patch.object(guard_cases, "STEPS", STEPS):
        for name, make in PROGRAMS.items():
            print(
                f"{name}: {'; '.join(', '.join(f'{one:.2g} %' for one in seed) for seed in shares(make))}", flush=True
            )
