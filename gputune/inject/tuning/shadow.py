"""The step that an optimizer would have taken in torch's plain form, beside the one that it takes."""

from __future__ import annotations

from typing import Any

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

    def compare(self) -> list[list[float]]:
        """For each parameter: the norm of the difference, that of the plain update, and that of the values before."""
        found = []
        for parameter, part, before in self._pairs:
            real, plain = self._part(parameter) - before, part.detach() - before
            found.append([float((real - plain).norm()), float(plain.norm()), float(before.norm())])
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
