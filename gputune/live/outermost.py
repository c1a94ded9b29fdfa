"""The outermost calls of modules: those that a program makes itself, from outside any other module.

A wrap of every module's call costs a microsecond each, and torch.compile traces what it reaches. So there is one wrap
for all that look on, and it takes itself out of the way during each outermost call. Only calls of one thread are looked
at: another one may be deep inside a model of its own when the wrap comes back.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

Ended = Callable[[Any, Any, Any], None]
Place = tuple[int, int]
"""A process and a thread of it."""


class Outermost:
    """Between `start` and `stop` it calls `ended(module, inputs, output)` after each outermost call that returned, of
    those with `gradients` on, or else off. `inputs` are the positional and the named ones. It looks at the thread that
    starts it, or where it is to be `found` at the first one that makes such a call.
    """

    def __init__(self, ended: Ended, *, gradients: bool, found: bool = False) -> None:
        self._ended, self._gradients, self._found = ended, gradients, found
        self._home: Place | None = None

    @property
    def active(self) -> bool:
        return self in _wrap.followers

    def start(self) -> None:
        self._home = None if self._found else here()
        _wrap.add(self)

    def stop(self) -> None:
        _wrap.remove(self)

    def is_at_home(self, place: Place) -> bool:
        return self._home in (place, None)

    def concerned(self, place: Place) -> bool:
        """Whether an outermost call that begins here and now is one to look at."""
        import torch

        if torch.is_grad_enabled() != self._gradients or not self.is_at_home(place):
            return False
        self._home = place
        return True

    def ended(self, module: Any, inputs: Any, output: Any) -> None:
        """Nothing that goes wrong in one that looks on may reach the program."""
        try:
            self._ended(module, inputs, output)
        except Exception:
            self.stop()


class _Wrap:
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
            dynamo = sys.modules.get("torch._dynamo.utils")  # which keeps what it finds when it is imported
            if getattr(dynamo, "unpatched_nn_module_call", None) is self._installed:
                dynamo.unpatched_nn_module_call = self._original  # type: ignore[union-attr]  # it has it
            self._installed = None

    def _install(self) -> None:
        import torch

        kind, wrap = torch.nn.Module, self
        original = self._original = kind.__call__

        def followed(self: Any, *inputs: Any, **named: Any) -> Any:
            if torch.compiler.is_compiling() or kind.__call__ is not followed or torch._C._get_tracing_state():
                return original(self, *inputs, **named)
            place = here()
            if not any(one.is_at_home(place) for one in wrap.followers):
                return original(self, *inputs, **named)
            concerned = [one for one in wrap.followers if one.concerned(place)]
            kind.__call__ = original
            try:
                output = original(self, *inputs, **named)
            finally:
                if wrap._installed is followed and kind.__call__ is original:
                    kind.__call__ = followed
            for one in concerned:
                one.ended(self, (inputs, named), output)
            return output

        kind.__call__ = self._installed = followed


def here() -> Place:
    return os.getpid(), threading.get_ident()


_wrap = _Wrap()
