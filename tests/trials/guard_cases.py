"""Small programs that train on the CPU, each with settings put in as `gputune tune` does: sound ones, and ones that the
settings break.

A program is a function of the number of steps, and knows nothing of gputune. What no healthy torch shows, a wrong
compiled call or a wrong fused optimizer, is put in on purpose right after the settings (`Case.spoil`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy
import pytest
import torch
from hands_on import unfollowed
from torch import nn
from torch.nn import functional

from gputune.knobs import Limits
from gputune.live.advice import Advice
from gputune.live.applied import Applied
from gputune.live.call import call_of
from gputune.live.injection import Injection
from gputune.live.iterations import Iterations
from gputune.live.records import Recorded
from gputune.live.tuning import seeds
from gputune.live.tuning.recording import Recorder, dropout
from gputune.search.combination import Combination
from gputune.trials import guard

STEPS = 100
Train = Callable[[int], None]
Spoil = Callable[[list[Any], pytest.MonkeyPatch], None]
"""Gets the models that settings were put into."""


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    train: Train
    settings: Mapping[str, Any] = field(default_factory=lambda: {"amp_dtype": "bfloat16"})
    spoil: Spoil | None = None

    @property
    def limits(self) -> Limits:
        return Combination.of(self.settings).limits


@dataclass(frozen=True, kw_only=True)
class Ran:
    recorded: Recorded
    rows: Mapping[str, Applied]


def ran(
    train: Train, settings: Mapping[str, Any] | None = None, spoil: Spoil | None = None, *, shift: int = 0,
    other_numbers: bool = False,
) -> Ran:  # fmt: skip
    """A guard run of a program: with nothing put in where `settings` is None."""
    with ExitStack() as stack:
        stack.enter_context(unfollowed())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.delenv("RANK", raising=False)
        stack.callback(seeds.shift(shift))
        said: list[str] = []
        advice = Advice(device="cpu", general=dict(settings or {}), quiet=True)
        injection = Injection(advice, _no_flag, said.append, is_tuned=True)
        if settings is not None:
            injection.start()
        recorder = Recorder()
        spoiled = False

        def ended() -> None:
            nonlocal spoiled
            recorder.iteration_ended()
            if spoil and injection._done and not spoiled:
                spoiled = True
                spoil(list(injection._done), patch)

        Iterations(ended).start()
        recorder.start()
        if other_numbers:
            stack.callback(dropout(lambda: recorder.is_compared))
        from torch._inductor import config as inductor_config  # not on top: it takes a second of every collection

        with inductor_config.patch(fallback_random=True):  # as in every guard run
            train(STEPS)
        assert not [line for line in said if "compile" not in line], said
        return Ran(recorded=recorder.recorded(), rows=injection.rows)


def _no_flag(name: str, value: Any) -> Applied:
    raise AssertionError((name, value))


@functools.cache
def fp32(train: Train) -> tuple[Recorded, ...]:
    return tuple(ran(train, shift=shift).recorded for shift in range(3))


@functools.cache
def by_chance(train: Train) -> Recorded:
    return ran(train, other_numbers=True).recorded


def judged(case: Case) -> guard.Verdict:
    """As `gputune.trials.checking` does it. Every setting of the case must have been put in."""
    both = [ran(case.train, case.settings, case.spoil, shift=shift) for shift in range(2)]
    for one in both:
        assert {name: row.status for name, row in one.rows.items()} == dict.fromkeys(case.settings, "applied"), one.rows
    tuned = [one.recorded for one in both]
    found = guard.verdict(fp32(case.train), tuned, case.limits)
    if found.may_be_chance:
        found = guard.verdict(fp32(case.train), tuned, case.limits, by_chance(case.train))
    return found


# Models


class Net(nn.Module):  # type: ignore[misc]
    """Its parts are its layers and parameters; `body` gets it and the inputs."""

    def __init__(self, body: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.body = body
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.body(self, *inputs)


def mlp(*widths: int, act: Any = nn.ReLU, **more: Any) -> Any:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after, **more), act()]
    return nn.Sequential(*layers[:-1])


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, dropout: float = 0.0, causal: bool = True) -> None:
        super().__init__()
        self.causal, self.drop = causal, nn.Dropout(dropout)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.feed = nn.Linear(width, 3 * width), nn.Linear(width, width), mlp(width, 64, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.one(x)).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.drop(self.out(seen.transpose(1, 2).reshape(x.shape)))
        return x + self.drop(self.feed(self.two(x)))


class Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: Any) -> Any:
        return torch.relu(x + self.norm2(self.two(torch.relu(self.norm1(self.one(x))))))


def decoder(dropout: float = 0.0) -> Any:
    def body(m: Any, tokens: Any) -> Any:
        return m.head(m.norm(m.blocks(m.embed(tokens) + m.place(torch.arange(tokens.shape[1])))))

    blocks = nn.Sequential(Attention(32, dropout), Attention(32, dropout))
    parts = {"embed": nn.Embedding(20, 32), "place": nn.Embedding(12, 32), "head": nn.Linear(32, 20)}
    return Net(body, blocks=blocks, norm=nn.LayerNorm(32), **parts)


# Data


def numbers(width: int = 16, count: int = 64, out: int = 1) -> tuple[Any, Any]:
    x = torch.randn(count, width)
    return x, torch.stack([(x * (1 + place)).sin().mean(1) + x[:, 0] * x[:, 1 + place] for place in range(out)], 1)


def classes(width: int = 16, count: int = 64) -> tuple[Any, Any]:
    x = torch.randn(count, width)
    return x, (x[:, :4] + x[:, 4:8].abs()).argmax(1)


def images(count: int = 16) -> tuple[Any, Any]:
    """Which quarter is bright."""
    x, y = 0.5 * torch.randn(count, 3, 12, 12), torch.randint(4, (count,))
    for one, place in zip(x, y.tolist(), strict=True):
        row, column = 6 * (place // 2), 6 * (place % 2)
        one[:, row : row + 6, column : column + 6] += 0.7
    return x, y


def text(count: int = 16) -> tuple[Any, Any]:
    tokens = torch.randint(20, (count, 13))
    for place in range(2, 13):
        tokens[:, place] = (tokens[:, place - 1] + 2 * tokens[:, place - 2]) % 20
    return tokens[:, :-1], tokens[:, 1:]


def series(count: int = 32) -> tuple[Any, Any]:
    phase, speed = 6 * torch.rand(count, 1), 0.2 + 0.5 * torch.rand(count, 1)
    wave = (phase + speed * torch.arange(21)).sin()
    return wave[:, :-1, None], wave[:, 1:, None]


def tokens_loss(found: Any, y: Any) -> Any:
    return functional.cross_entropy(found.flatten(0, 1), y.flatten())


mse, entropy = functional.mse_loss, functional.cross_entropy


# Loops


def fit(steps: int, model: Any, data: Callable[[], Any], loss: Any = mse, *, lr: float = 3e-3, **more: Any) -> None:
    """`more`: the optimizer's class as `kind`, `clip`, `accumulate`, `schedule`, and arguments of the optimizer."""
    kind, clip, accumulate = more.pop("kind", torch.optim.Adam), more.pop("clip", 0.0), more.pop("accumulate", 1)
    schedule = more.pop("schedule", None)
    optimizer = kind(model.parameters(), lr=lr, **more)
    scheduler = schedule(optimizer) if schedule else None
    for _ in range(steps):
        for _ in range(accumulate):
            x, y = data()
            (loss(model(x), y) / accumulate).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler:
            scheduler.step()
        optimizer.zero_grad()


SGD, ADAMW = torch.optim.SGD, torch.optim.AdamW
HALF, FUSED = {"amp_dtype": "bfloat16"}, {"fused_optimizer": True}
BOTH = {**HALF, **FUSED}
IMAGES = {**BOTH, "channels_last": True}
SOUND: list[Case] = []
BROKEN: list[Case] = []


def sound(**settings: Any) -> Callable[[Train], Train]:
    def note(train: Train) -> Train:
        SOUND.append(Case(name=train.__name__, train=train, settings=settings or BOTH))
        return train

    return note


def broken(*spoils: Spoil, **settings: Any) -> Callable[[Train], Train]:
    def note(train: Train) -> Train:
        for spoil in spoils or (None,):
            name = train.__name__ + (f": {spoil.__name__}" if spoil else "")
            BROKEN.append(Case(name=name, train=train, settings=settings or HALF, spoil=spoil))
        return train

    return note


# Sound programs


@sound()
def perceptron(steps: int) -> None:
    fit(steps, mlp(16, 64, 64, 4), classes, entropy)


@sound(fused_optimizer=True)
def perceptron_that_is_only_fused(steps: int) -> None:
    fit(steps, mlp(16, 64, 64, 4), classes, entropy, kind=ADAMW, weight_decay=0.1)


@sound()
def regression_that_seeds_itself(steps: int) -> None:
    torch.manual_seed(0)
    numpy.random.seed(0)
    fit(steps, mlp(16, 64, 1), numbers, lr=1e-2)


@sound()
def linear_regression(steps: int) -> None:
    fit(steps, mlp(16, 1), numbers, kind=SGD, lr=0.05)


@sound(**IMAGES)
def convnet(steps: int) -> None:
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    fit(steps, nn.Sequential(*layers, nn.Linear(16, 4)), images, entropy, kind=SGD, lr=0.05, momentum=0.9)


@sound(**IMAGES)
def residual_net(steps: int) -> None:
    layers = [nn.Conv2d(3, 8, 3, padding=1), *[Residual(8) for _ in range(4)], nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    more = {"momentum": 0.9, "weight_decay": 1e-4, "nesterov": True}
    fit(steps, nn.Sequential(*layers, nn.Linear(8, 4)), images, entropy, kind=SGD, lr=0.05, **more)


@sound()
def transformer_block(steps: int) -> None:
    model = nn.Sequential(nn.Linear(1, 32), Attention(32, causal=False), nn.Linear(32, 1))
    fit(steps, model, series, kind=ADAMW, weight_decay=0.05)


@sound()
def language_model(steps: int) -> None:
    fit(steps, decoder(), text, tokens_loss, kind=ADAMW, clip=1.0)


@sound()
def language_model_with_dropout(steps: int) -> None:
    fit(steps, decoder(0.1), text, tokens_loss, kind=ADAMW)


@sound(**FUSED)
def recurrent(steps: int) -> None:
    """In FP32, since not every CPU has torch's LSTM in bfloat16."""
    fit(steps, Net(lambda m, x: m.out(m.lstm(x)[0]), lstm=nn.LSTM(1, 24, 2), out=nn.Linear(24, 1)), series, clip=0.5)


@sound()
def recurrent_by_hand(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h, found = torch.zeros(len(x), 24), []
        for at in range(x.shape[1]):
            new, gate = m.cell(torch.cat([x[:, at], h], 1)).chunk(2, 1)
            h = torch.lerp(h, new.tanh().to(h.dtype), gate.sigmoid().to(h.dtype))
            found.append(m.out(h))
        return torch.stack(found, 1)

    fit(steps, Net(body, cell=nn.Linear(25, 48), out=nn.Linear(24, 1)), series, clip=0.5)


@sound()
def autoencoder(steps: int) -> None:
    def data() -> tuple[Any, Any]:
        x = torch.randn(64, 4) @ torch.linspace(-1, 1, 128).view(4, 32).cos()
        return x, x

    fit(steps, mlp(32, 16, 4, 16, 32, act=nn.Tanh), data, lr=1e-2)


@sound()
def adversarial_pair(steps: int) -> None:
    maker, judge = mlp(8, 32, 2), mlp(2, 32, 1, act=nn.Tanh)
    one = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.999))
    two = torch.optim.Adam(maker.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for _ in range(steps):
        real = torch.randn(64, 2) * torch.tensor([1.0, 0.3]) + torch.tensor([1.0, -1.0])
        made = maker(torch.randn(64, 8))
        one.zero_grad()
        (functional.softplus(-judge(real)).mean() + functional.softplus(judge(made.detach())).mean()).backward()
        one.step()
        two.zero_grad()
        functional.softplus(-judge(made)).mean().backward()
        two.step()


@sound(**IMAGES)
def u_shaped(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        first = torch.relu(m.down(x))
        deep = torch.relu(m.deep(functional.max_pool2d(first, 2)))
        return m.out(torch.cat([first, m.up(deep)], 1))

    parts = {"down": nn.Conv2d(3, 8, 3, padding=1), "deep": nn.Conv2d(8, 16, 3, padding=1)}
    parts |= {"up": nn.ConvTranspose2d(16, 8, 2, stride=2), "out": nn.Conv2d(16, 1, 1)}

    def data() -> tuple[Any, Any]:
        x, _ = images()
        return x, (functional.avg_pool2d(x, 3, 1, 1).mean(1, keepdim=True) > 0.3).float()

    fit(steps, Net(body, **parts), data, functional.binary_cross_entropy_with_logits)


@sound()
def bag_of_words(steps: int) -> None:
    def data() -> tuple[Any, Any]:
        words = torch.randint(50, (64, 6))
        return words, (words < 20).sum(1).clamp(max=3)

    fit(steps, nn.Sequential(nn.EmbeddingBag(50, 16), mlp(16, 32, 4)), data, entropy, lr=1e-2)


@sound()
def heavy_dropout(steps: int) -> None:
    model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 4))
    fit(steps, model, classes, entropy)


@sound()
def accumulated(steps: int) -> None:
    fit(steps, mlp(16, 64, 4), lambda: classes(count=16), entropy, accumulate=4)


@sound()
def clipped_hard(steps: int) -> None:
    fit(steps, mlp(16, 64, 1), numbers, kind=SGD, lr=0.1, clip=0.1)


@sound()
def scheduled(steps: int) -> None:
    def schedule(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=STEPS + 1)

    fit(steps, mlp(16, 64, 4), classes, entropy, kind=ADAMW, schedule=schedule)


@sound()
def two_heads(steps: int) -> None:
    model = Net(lambda m, x: (m.a(h := m.trunk(x)), m.b(h)), trunk=mlp(16, 64, 32), a=mlp(32, 1), b=mlp(32, 4))

    def data() -> tuple[Any, Any]:
        x, y = numbers()
        return x, (y, x[:, :4].argmax(1))

    fit(steps, model, data, lambda found, y: mse(found[0], y[0]) + 0.5 * entropy(found[1], y[1]))


def with_labels(m: Any, x: Any) -> Any:
    logits = m.net(x)
    return logits, logits.argmax(-1), logits > 0, (logits > 0).sum(), logits.topk(5).indices


@sound()
def labels_beside_logits(steps: int) -> None:
    fit(steps, Net(with_labels, net=mlp(16, 64, 1000)), classes, lambda found, y: entropy(found[0], y))


@sound()
def tokens_beside_logits(steps: int) -> None:
    model = Net(lambda m, tokens: {"logits": (z := m.net(tokens)), "tokens": z.argmax(-1)}, net=decoder())
    fit(steps, model, text, lambda found, y: tokens_loss(found["logits"], y))


@sound()
def experts_and_their_counts(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        weights, chosen = m.router(x).softmax(-1).topk(2, -1)
        found = torch.stack([one(x) for one in m.experts], 1)
        taken = found.gather(1, chosen[..., None].expand(-1, -1, 4))
        return (taken * weights[..., None]).sum(1), chosen, torch.bincount(chosen.flatten(), minlength=8)

    experts = nn.ModuleList([mlp(16, 32, 4) for _ in range(8)])
    fit(steps, Net(body, router=nn.Linear(16, 8), experts=experts), lambda: classes(count=256), lambda found, y: (
        entropy(found[0], y)
    ))  # fmt: skip


def codes(z: Any) -> tuple[Any, Any]:
    """Finite scalar quantisation, and the number of each of its 1000 codes."""
    half, basis = torch.tensor([3.5, 2.0, 2.0, 2.0]).to(z.dtype), torch.tensor([1, 8, 40, 200]).to(z.dtype)
    b = torch.tanh(z * 3) * half
    q = b + (b.round() - b).detach()
    return q / half, ((q.detach().round() + half.floor()).clamp(min=0) * basis).sum(-1).to(torch.int32)


def quantised(m: Any, x: Any) -> Any:
    q, found = codes(m.encode(x).float())
    return m.decode(q), found


def quantised_in_half(m: Any, x: Any) -> Any:
    q, found = codes(m.encode(x))
    return m.decode(q), found


def fit_quantised(steps: int, body: Any) -> None:
    def data() -> tuple[Any, Any]:
        x = torch.randn(256, 16)
        return x, x

    fit(steps, Net(body, encode=mlp(16, 64, 4), decode=mlp(4, 64, 16)), data, lambda found, y: mse(found[0], y))


@sound()
def codes_in_fp32(steps: int) -> None:
    fit_quantised(steps, quantised)


@sound()
def contrastive(steps: int) -> None:
    model = Net(lambda m, x: functional.normalize(m.net(x), dim=-1), net=mlp(16, 64, 16))

    def data() -> tuple[Any, Any]:
        x = torch.randn(32, 16)
        return torch.cat([x, x + 0.3 * torch.randn(32, 16)]), torch.arange(32)

    fit(steps, model, data, lambda found, y: entropy(found[:32] @ found[32:].T / 0.1, y))


@sound()
def loss_that_is_nearly_zero(steps: int) -> None:
    fit(steps, mlp(16, 4), lambda: (x := torch.randn(64, 16), x[:, :4]), kind=SGD, lr=1.0)


@sound()
def saturated_classifier(steps: int) -> None:
    fit(steps, mlp(16, 64, 4), lambda: (x := torch.randn(64, 16), (x[:, 0] > 0).long()), entropy, lr=1e-2)


@sound()
def embeddings_and_distances(steps: int) -> None:
    model = Net(lambda m, x: torch.exp(-torch.cdist(m.net(x), m.centres)) @ m.w, net=mlp(16, 32, 8))
    model.centres, model.w = nn.Parameter(torch.randn(10, 8)), nn.Parameter(torch.randn(10, 1))
    fit(steps, model, numbers)


@sound(compile=True, **BOTH)
def compiled_perceptron(steps: int) -> None:
    fit(steps, mlp(16, 64, 4), classes, entropy)


@sound(compile=True, **FUSED)
def compiled_with_dropout(steps: int) -> None:
    fit(steps, nn.Sequential(mlp(16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4)), classes, entropy)


def with_other_numbers(models: list[Any], patch: pytest.MonkeyPatch) -> None:
    """As kernels of half precision do on a GPU."""
    for model in models:
        plain = model.forward
        call_of(model, "cpu").compiled = lambda *inputs, plain=plain: (torch.rand(1), plain(*inputs))[1]


def little_dropout(steps: int) -> None:
    fit(steps, nn.Sequential(mlp(16, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 4)), classes, entropy)


SOUND += [
    Case(name=f"{train.__name__} with other numbers", train=train, settings=settings, spoil=with_other_numbers)
    for train, settings in ((heavy_dropout, BOTH), (little_dropout, FUSED), (language_model_with_dropout, BOTH))
]


# Programs that need FP32's mantissa


@broken()
def offset_features(steps: int) -> None:
    fit(steps, mlp(16, 64, 1), lambda: ((n := numbers())[0] + 2000, n[1]), lr=1e-3)


@broken()
def difference_of_large_outputs(steps: int) -> None:
    model = Net(lambda m, x: m.a(x) - m.b(x), a=mlp(16, 32, 1), b=mlp(16, 32, 1))
    nn.init.constant_(model.a[-1].bias, 1000.0)
    nn.init.constant_(model.b[-1].bias, 1000.0)
    fit(steps, model, numbers)


@broken()
def cumulative_sum(steps: int) -> None:
    model = Net(lambda m, x: m.net(x).cumsum(1).diff(dim=1), net=mlp(1, 16, 1))
    fit(steps, model, lambda: (x := 5 + torch.randn(8, 512, 1), 10 + x[:, 1:].sin()), lr=1e-2)


@broken()
def physics_residual(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        u = m.net
        return (u(x + 0.05) - 2 * u(x) + u(x - 0.05)) / 0.05**2 + u(x)

    fit(steps, Net(body, net=mlp(1, 32, 32, 1, act=nn.Tanh)), lambda: (x := torch.randn(64, 1), x.sin()))


@broken()
def huge_logits(steps: int) -> None:
    model = Net(lambda m, x: torch.softmax(m.a(x) * 300, -1) @ m.v, a=mlp(16, 16), v=nn.Parameter(torch.randn(16, 1)))
    fit(steps, model, numbers)


@broken()
def normalised_about_a_large_mean(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h = m.a(x)
        return m.b((h - h.mean(0)) / h.std(0))

    model = Net(body, a=nn.Linear(16, 32), b=nn.Linear(32, 1))
    nn.init.constant_(model.a.bias, 200.0)
    fit(steps, model, numbers)


@broken()
def index_arithmetic(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        at = (x @ torch.tensor([[64.0], [1.0]])).round().long().squeeze(1)
        return m.table(at.clamp(0, 4095))

    def data() -> tuple[Any, Any]:
        x = torch.randint(64, (256, 2)).float()
        return x, (x.sum(1, keepdim=True) % 2) * 2 - 1

    fit(steps, Net(body, table=nn.Embedding(4096, 1)), data, lr=0.1)


@broken()
def fourier_features(steps: int) -> None:
    parts = {"a": nn.Linear(1, 32), "b": nn.Linear(32, 1)}
    model = Net(lambda m, t: m.b((m.a(t) * 400).sin()), **parts)
    fit(steps, model, lambda: (t := torch.rand(64, 1), (400 * t).sin()))


@broken()
def small_increments(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h, change = m.start(x) + 24, 1e-2 * torch.tanh(m.cell(x))
        for _ in range(100):
            h = h + change
        return m.out(h - 24)

    parts = {"start": nn.Linear(16, 16), "cell": nn.Linear(16, 16), "out": nn.Linear(16, 1)}
    fit(steps, Net(body, **parts), numbers, lr=1e-2)


@broken()
def expanded_distances(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        c = m.centres
        squared = x.square().sum(1, keepdim=True) - 2 * x @ c.T + c.square().sum(1)
        return torch.exp(-squared.clamp(min=0) / 16) @ m.w

    model = Net(body, centres=nn.Parameter(20 + torch.randn(12, 16)), w=nn.Parameter(torch.randn(12, 1)))
    fit(steps, model, lambda: ((n := numbers())[0] + 20, n[1]))


@broken()
def variance_by_moments(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h = m.a(x) + 50
        mean = torch.full((1, 32), 1 / 32)
        spread = functional.linear(h * h, mean) - functional.linear(h, mean) ** 2
        return m.b(h - 50) / (spread.abs() + 1e-3).sqrt()

    fit(steps, Net(body, a=nn.Linear(16, 32), b=nn.Linear(32, 1)), numbers)


@broken()
def ill_conditioned_solve(steps: int) -> None:
    def solution(matrix: Any, wanted: Any) -> Any:
        """By conjugate gradients: what torch solves keeps mixed precision off."""
        found, rest = torch.zeros_like(wanted), wanted
        along = rest
        for _ in range(12):
            image = matrix @ along
            size = rest.square().sum() / (along * image).sum()
            found, new = found + size * along, rest - size * image
            rest, along = new, new + new.square().sum() / rest.square().sum() * along
        return found

    def body(m: Any, x: Any) -> Any:
        h = m.a(x)
        gram = (h.T @ h).float() + 1e-2 * torch.eye(32)
        return h.float() @ solution(gram, (h.T @ x[:, :1]).float())

    fit(steps, Net(body, a=mlp(16, 32, 32, act=nn.Tanh)), lambda: ((n := numbers())[0], n[1]))


@broken()
def chaotic_map(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h = torch.sigmoid(m.a(x))
        for _ in range(14):
            h = 3.9 * h * (1 - functional.linear(h, m.eye))
        return m.b(h)

    model = Net(body, a=nn.Linear(16, 8), b=nn.Linear(8, 1))
    model.register_buffer("eye", torch.eye(8))
    fit(steps, model, numbers, lr=1e-3, clip=1.0)


@broken()
def fractional_part(steps: int) -> None:
    model = Net(lambda m, x: m.b(torch.frac(m.a(x) * 1000)), a=nn.Linear(16, 32), b=nn.Linear(32, 1))
    fit(steps, model, numbers)


@broken()
def orthogonality_residual(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        return 1e3 * (m.w.T @ m.w - torch.eye(32)) + 0 * x

    model = Net(body, w=nn.Parameter(nn.init.orthogonal_(torch.empty(32, 32)) + 1e-4 * torch.randn(32, 32)))
    fit(steps, model, lambda: (torch.zeros(1), torch.zeros(32, 32)), lr=1e-6)


@broken()
def exact_counts(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        return m.table((x @ torch.ones(600, 1)).long().squeeze(1) % 2)

    def data() -> tuple[Any, Any]:
        x = (torch.rand(64, 600) < 0.9).float()
        return x, x.sum(1, keepdim=True) % 2

    fit(steps, Net(body, table=nn.Embedding(2, 1)), data, lr=0.05)


@broken()
def difference_of_energies(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        return (m.net(x + 3e-3 * x.roll(1, 1)) - m.net(x)) * 300

    fit(steps, Net(body, net=mlp(16, 64, 1, act=nn.Tanh)), numbers)


@broken()
def integrated_trajectory(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        at, speed = m.at(x), m.speed(x)
        for _ in range(80):
            speed = speed - 0.4 * functional.linear(at.sin() * 2, m.eye)
            at = at + 0.4 * speed
        return at.sin()

    model = Net(body, at=nn.Linear(16, 4), speed=nn.Linear(16, 4))
    model.register_buffer("eye", torch.eye(4) * 3)
    fit(steps, model, lambda: numbers(out=4), lr=1e-3, clip=1.0)


# Programs whose loss bears bfloat16, and another output does not


@broken()
def codes_in_half(steps: int) -> None:
    fit_quantised(steps, quantised_in_half)


@broken()
def embedding_for_retrieval(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h = torch.relu(m.a(x))
        return {"logits": m.b(h), "embedding": functional.normalize((m.c(h + 300) - m.c(h * 0 + 300)).float())}

    parts = {"a": nn.Linear(16, 32), "b": nn.Linear(32, 4), "c": nn.Linear(32, 8)}
    fit(steps, Net(body, **parts), classes, lambda found, y: entropy(found["logits"], y))


@broken()
def counts_in_half(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        return m.net(x), (x.abs() @ torch.full((16, 1), 100.0)).round().long().squeeze(1)

    fit(steps, Net(body, net=mlp(16, 64, 4)), classes, lambda found, y: entropy(found[0], y))


@broken()
def mask_of_the_lowest_bit(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h = m.net(x)
        return h, (h * 1000).long() % 2 == 0

    fit(steps, Net(body, net=mlp(16, 64, 4)), classes, lambda found, y: entropy(found[0], y))


# Programs that need FP32's range, in float16


def in_float16(models: list[Any], patch: pytest.MonkeyPatch) -> None:
    for model in models:
        call_of(model, "cpu").dtype = torch.float16


@broken(in_float16)
def large_activations(steps: int) -> None:
    fit(steps, Net(lambda m, x: m.b(m.a(x * 3e5)) / 3e5, a=nn.Linear(16, 32), b=nn.Linear(32, 1)), numbers)


@broken(in_float16)
def tiny_gradients(steps: int) -> None:
    fit(steps, mlp(16, 64, 1), numbers, lambda found, y: 1e-7 * mse(found, y), eps=1e-14)


@broken(in_float16)
def tiny_gradients_of_a_branch(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        return m.a(x) + 1e-6 * m.b(1e3 * x) * 1e2

    fit(steps, Net(body, a=mlp(16, 32, 1), b=mlp(16, 32, 1)), numbers, lambda found, y: 1e-2 * mse(found, y))


def likelihood(rate: Any, count: Any) -> Any:
    return 1e-5 * functional.poisson_nll_loss(rate, count, log_input=False)


@broken(in_float16)
def large_rates(steps: int) -> None:
    model = Net(lambda m, x: torch.exp(m.net(x) + 11), net=mlp(16, 32, 1, act=nn.Tanh))
    fit(steps, model, lambda: ((n := numbers())[0], torch.exp(11 + n[1])), likelihood)


@broken(in_float16)
def sum_of_squares(steps: int) -> None:
    def body(m: Any, x: Any) -> Any:
        h = m.a(x * 100)
        return m.b(h / (h * h).sum(1, keepdim=True).sqrt())

    fit(steps, Net(body, a=nn.Linear(16, 64), b=nn.Linear(64, 1)), numbers)


@broken(in_float16)
def loss_that_grows(steps: int) -> None:
    """Its outputs leave float16's range some steps after the settings were put in."""
    fit(steps, mlp(16, 32, 1), lambda: ((n := numbers())[0], 1e5 + n[1]), functional.l1_loss, kind=SGD, lr=5.0)


# Wrong fused optimizers


def wrong_kernel(name: str, **changed: Any) -> Spoil:
    """Other values for arguments of torch's fused kernels; a function gets the right value."""

    def spoil(models: list[Any], patch: pytest.MonkeyPatch) -> None:
        for kernel in ("_fused_adam_", "_fused_adamw_", "_fused_sgd_"):
            patch.setattr(torch, kernel, functools.partial(run, getattr(torch, kernel)))

    def run(right: Any, *lists: Any, **named: Any) -> Any:
        for key, value in changed.items():
            if key in named:
                named[key] = value(named[key]) if callable(value) else value
        return right(*lists, **named)

    spoil.__name__ = name
    return spoil


def one_skipped(models: list[Any], patch: pytest.MonkeyPatch) -> None:
    right = torch._fused_adamw_

    def run(*lists: Any, **named: Any) -> Any:
        return right(*[one[1:] if one else one for one in lists], **named)

    patch.setattr(torch, "_fused_adamw_", run)


def no_bias_correction(models: list[Any], patch: pytest.MonkeyPatch) -> None:
    right = torch._fused_adamw_

    def run(*lists: Any, **named: Any) -> Any:
        return right(*lists[:5], [one + 1e6 for one in lists[5]], **named)

    patch.setattr(torch, "_fused_adamw_", run)


def growing(models: list[Any], patch: pytest.MonkeyPatch) -> None:
    """A little more with each step, and right at first."""
    rate = 1.0

    def more(lr: float) -> float:
        nonlocal rate
        rate *= 1.08
        return lr * rate / 1.08

    wrong_kernel("growing", lr=more)(models, patch)


WRONG = [
    wrong_kernel("no weight decay", weight_decay=0.0),
    wrong_kernel("eps", eps=1e-3),
    wrong_kernel("the first beta", beta1=0.95),
    wrong_kernel("the second beta", beta2=0.99),
    wrong_kernel("half the step", lr=lambda lr: lr / 2),
    wrong_kernel("the other direction", maximize=True),
]


@broken(*WRONG, one_skipped, no_bias_correction, **FUSED)
def with_adamw(steps: int) -> None:
    fit(steps, mlp(16, 64, 4), classes, entropy, kind=ADAMW, lr=1e-3)


@broken(
    wrong_kernel("dampened", dampening=0.5),
    growing,
    wrong_kernel("no nesterov", nesterov=False),
    wrong_kernel("5 % too far", lr=lambda lr: lr * 1.05),
    **FUSED,
)
def with_momentum(steps: int) -> None:
    fit(steps, mlp(16, 64, 4), classes, entropy, kind=SGD, lr=1e-2, momentum=0.9, nesterov=True)


# Wrong compiled calls


def miscompiled(wrong: Callable[..., Any]) -> Spoil:
    """`wrong` gets the model and what it is called with."""

    def spoil(models: list[Any], patch: pytest.MonkeyPatch) -> None:
        for model in models:
            call_of(model, "cpu").compiled = functools.partial(wrong, model)

    spoil.__name__ = wrong.__name__
    return spoil


@miscompiled
def scaled_by_a_fiftieth(m: Any, x: Any) -> Any:
    return 1.02 * m.forward(x)


@miscompiled
def without_a_term(m: Any, x: Any) -> Any:
    return m.b(m.a(x))


@miscompiled
def without_a_bias(m: Any, x: Any) -> Any:
    h = m.a(x)
    return functional.linear(h + m.c(h), m.b.weight)


@miscompiled
def detached_branch(m: Any, x: Any) -> Any:
    h = m.a(x)
    return m.b(h + m.c(h).detach())


@miscompiled
def detached_trunk(m: Any, x: Any) -> Any:
    h = m.a(x).detach()
    return m.b(h + m.c(h))


@miscompiled
def part_scaled(m: Any, x: Any) -> Any:
    h = m.a(x)
    return m.b(h + 1.2 * m.c(h))


@miscompiled
def rows_in_another_order(m: Any, x: Any) -> Any:
    return m.forward(x.flip(0))


@miscompiled
def half_of_the_batch(m: Any, x: Any) -> Any:
    found = m.forward(x)
    return torch.cat([found[:32], found[32:].detach()])


@miscompiled
def outputs_of_the_call_before(m: Any, x: Any) -> Any:
    before, m.__dict__["before"] = m.__dict__.get("before"), m.forward(x)
    return m.forward(x) if before is None else before.detach() + m.before - m.before.detach()


@miscompiled
def no_number_after_some_calls(m: Any, x: Any) -> Any:
    m.__dict__["calls"] = m.__dict__.get("calls", 0) + 1
    return m.forward(x) * (math.nan if m.calls > 40 else 1.0)


@miscompiled
def slowly_diverging(m: Any, x: Any) -> Any:
    m.__dict__["calls"] = m.__dict__.get("calls", 0) + 1
    return m.forward(x) + 2e-4 * m.calls**2 * torch.sin(torch.tensor(2.0 * m.calls))


MISCOMPILED = [
    scaled_by_a_fiftieth, without_a_term, without_a_bias, detached_branch, detached_trunk, part_scaled,
    rows_in_another_order, half_of_the_batch, outputs_of_the_call_before, no_number_after_some_calls, slowly_diverging,
]  # fmt: skip


@broken(*MISCOMPILED, **FUSED)
def branched(steps: int) -> None:
    parts = {"a": mlp(16, 64), "c": mlp(64, 64, act=nn.Tanh), "b": nn.Linear(64, 1)}
    fit(steps, Net(lambda m, x: m.b((h := m.a(x)) + m.c(h)), **parts), numbers)


@miscompiled
def without_dropout(m: Any, x: Any) -> Any:
    m.eval()
    found = m.forward(x)
    m.train()
    return found


@broken(without_dropout, **FUSED)
def with_dropout(steps: int) -> None:
    fit(steps, nn.Sequential(mlp(16, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 4)), classes, entropy)


@broken(without_dropout, **FUSED)
def with_statistics(steps: int) -> None:
    model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    fit(steps, model, classes, entropy)


@miscompiled
def over_the_wrong_axis(m: Any, x: Any) -> Any:
    h = m[0](x)
    return m[3](m[2]((h - h.mean(1, keepdim=True)) / (h.var(1, keepdim=True) + 1e-5).sqrt()) * 1.0)


@broken(over_the_wrong_axis, **FUSED)
def with_statistics_again(steps: int) -> None:
    model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    fit(steps, model, classes, entropy)


@miscompiled
def without_the_mask(m: Any, tokens: Any) -> Any:
    for block in m.blocks:
        block.causal = False
    found = m.forward(tokens)
    for block in m.blocks:
        block.causal = True
    return found


@broken(without_the_mask, **FUSED)
def with_a_mask(steps: int) -> None:
    fit(steps, decoder(), text, tokens_loss)
