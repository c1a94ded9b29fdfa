"""What a guard run records: losses, short images of gradients, and an optimizer's step beside its plain form's."""

from __future__ import annotations

from typing import Any

from ..observer import Follower

SIZE = 64
"""Numbers of an image: the norm is estimated with a standard error of one part in eleven."""
DIGITS = 5
"""How many digits each number of an image has, so that one takes 0.7 KB and thousands fit into a message."""
CHUNK = 1 << 22


def sketch(tensor: Any) -> list[float]:
    """Return `SIZE` sums of the elements with signs that depend on their places alone, each over every `SIZE`-th one.

    No random number is drawn: the signs are bits of a hash of the place.
    """
    import torch

    flat = tensor.detach().reshape(-1)
    sums = torch.zeros(SIZE, dtype=torch.float64, device=flat.device)
    for begin in range(0, flat.numel(), CHUNK):
        part = flat[begin : begin + CHUNK].double()
        signed = part * _signs(begin, part.numel(), flat.device)
        short = -signed.numel() % SIZE
        sums += torch.nn.functional.pad(signed, (0, short)).view(-1, SIZE).sum(0)
    return [float(f"{one:.{DIGITS}g}") for one in sums.tolist()]


def _signs(begin: int, count: int, device: Any) -> Any:
    """+1 or -1 for each place. The hash mixes the bits of 32-bit numbers as Murmur's finaliser does."""
    import torch

    mask = 0xFFFFFFFF
    x = torch.arange(begin, begin + count, device=device, dtype=torch.int64) & mask
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        x = ((x ^ (x >> 15)) * factor) & mask
    return (((x ^ (x >> 16)) & 1) * 2 - 1).double()


class Losses(Follower):
    """The losses of all iterations since it follows. An iteration with several backward calls, as with accumulated
    gradients, has their mean.

    What a `GradScaler` has scaled counts as it was before. `torch.autograd.grad` is not seen, nor is a backward call on
    anything but a scalar.
    """

    def __init__(self) -> None:
        self._iterations: list[Any] = []
        self._now: list[Any] = []

    def backward_begun(self, losses: list[Any]) -> None:
        import torch

        for one in losses:
            if isinstance(one, torch.Tensor) and one.numel() == 1:
                value = one.detach().float().reshape(()).clone()
                # Losses on several devices have their mean on the first one's.
                self._now.append(value.to(self._now[0].device, non_blocking=True) if self._now else value)

    def iteration_ended(self) -> None:
        import torch

        self._iterations.append(torch.stack(self._now).mean() if self._now else None)
        self._now = []

    def plain(self) -> list[float | None]:
        """The loss of each iteration, which may be no number; None where no loss was seen."""
        return [None if one is None else float(one) for one in self._iterations]


KINDS = ("Adam", "AdamW", "SGD")
"""The classes, exactly, that step each element by itself, so that a slice of a parameter steps as the whole does."""
SLICE, MOST = 1 << 16, 1 << 22
"""So many elements of each parameter are looked at, and of all together: a copy of them, and of what belongs to them,
takes 80 MB at the most."""
FORMS = ("fused", "foreach", "capturable", "differentiable")


class Shadow:
    """Made before a step of an optimizer; `compare` after it. Raises whatever torch does where it cannot be made."""

    def __init__(self, optimizer: Any) -> None:
        import torch

        count = sum(len(group["params"]) for group in optimizer.param_groups)
        self._slice = min(SLICE, max(1, MOST // max(1, count)))
        self._pairs: list[tuple[Any, Any, Any]] = []
        groups = []
        states: list[tuple[Any, dict[str, Any]]] = []
        for group in optimizer.param_groups:
            own = []
            for parameter in group["params"]:
                if parameter.grad is None or parameter.grad.layout != torch.strided:
                    continue
                part = torch.nn.Parameter(self._part(parameter).clone())
                part.grad = self._part(parameter.grad).clone()
                self._pairs.append((parameter, part, part.detach().clone()))
                own.append(part)
                states.append((part, self._state(optimizer.state.get(parameter, {}), parameter)))
            if own:
                given = {name: value for name, value in group.items() if name != "params" and name not in FORMS}
                groups.append({**given, "params": own})
        if not groups:
            return
        kind: Any = type(optimizer)
        plain = kind(groups, lr=groups[0]["lr"], foreach=False)
        plain.state.update(states)
        step = kind.step
        # Without the hooks on every optimizer's step: this one is none of the program's.
        (step.__wrapped__ if getattr(step, "hooked", False) else step)(plain)

    @staticmethod
    def obstacle(optimizer: Any) -> str | None:
        """Why the plain form of the optimizer's step is not known here; None where it is."""
        import torch

        kind = type(optimizer)
        if kind not in [getattr(torch.optim, name) for name in KINDS]:
            return kind.__name__
        return "a loss scaler is part of the step" if getattr(optimizer, "grad_scale", None) is not None else None

    def compare(self) -> list[tuple[float, float, float]]:
        """For each parameter: the norm of the difference, that of the plain update, and that of the values before."""
        found = []
        for parameter, part, before in self._pairs:
            real, plain = self._part(parameter) - before, part.detach() - before
            found.append((float((real - plain).norm()), float(plain.norm()), float(before.norm())))
        return found

    def _part(self, tensor: Any) -> Any:
        return tensor.detach().reshape(-1)[: self._slice]

    def _state(self, state: dict[str, Any], parameter: Any) -> dict[str, Any]:
        import torch

        copied: dict[str, Any] = {}
        for name, value in state.items():
            if name == "step":
                copied[name] = torch.as_tensor(value, dtype=torch.float32).detach().cpu().clone()
            elif isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                copied[name] = self._part(value).clone()
            else:
                copied[name] = value
        return copied
