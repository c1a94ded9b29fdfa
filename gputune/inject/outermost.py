"""The outermost calls of modules: those that a program makes itself, from outside any other module.

A wrap of every module's call costs a microsecond each, and torch.compile traces what it reaches. So there is one wrap
for all that look on, and it takes itself out of the way during each outermost call. Only calls of one thread are looked
at: another one may be deep inside a model of its own when the wrap comes back.
"""

import os
import threading
from collections.abc import Callable
from typing import Any

Ended = Callable[[Any, Any, Any], None]


class Outermost:
    """Between `start` and `stop` it calls `ended(module, inputs, output)` after each outermost call in this thread that
    returned, of those with `gradients` on, or else off. `inputs` are the positional and the named ones.
    """

    def __init__(self, ended: Ended, *, gradients: bool) -> None:
        self.ended, self._gradients = ended, gradients
        self._home = (0, 0)

    @property
    def active(self) -> bool:
        return self in _wrap.followers

    def start(self) -> None:
        self._home = _here()
        _wrap.add(self)

    def stop(self) -> None:
        _wrap.remove(self)

    def concerned(self) -> bool:
        """Whether a call that begins now is one to look at."""
        import torch

        return torch.is_grad_enabled() == self._gradients and self._home == _here()


class _Wrap:
    """`torch.nn.Module.__call__`, as long as anybody looks on."""

    def __init__(self) -> None:
        self.followers: list[Outermost] = []
        self._original: Any = None
        self._installed: Any = None

    def add(self, follower: Outermost) -> None:
        if follower not in self.followers:
            self.followers.append(follower)
        if self._installed is None:
            self._install()

    def remove(self, follower: Outermost) -> None:
        import torch

        if follower in self.followers:
            self.followers.remove(follower)
        if not self.followers and self._installed is not None:
            if torch.nn.Module.__call__ is self._installed:
                torch.nn.Module.__call__ = self._original
            self._installed = None

    def _install(self) -> None:
        import torch

        kind, wrap = torch.nn.Module, self
        original = self._original = kind.__call__

        def followed(self: Any, *inputs: Any, **named: Any) -> Any:
            if torch.compiler.is_compiling() or kind.__call__ is not followed or torch._C._get_tracing_state():
                return original(self, *inputs, **named)
            followers = [one for one in wrap.followers if one.concerned()]
            if not followers:
                return original(self, *inputs, **named)
            kind.__call__ = original
            try:
                output = original(self, *inputs, **named)
            finally:
                if wrap._installed is followed and kind.__call__ is original:
                    kind.__call__ = followed
            for one in followers:
                one.ended(self, (inputs, named), output)
            return output

        kind.__call__ = self._installed = followed


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


_wrap = _Wrap()
