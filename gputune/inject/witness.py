"""Wraps functions of torch during one training step, to find out whether the program itself uses autocast or
checkpointing.
"""

from collections.abc import Callable
from typing import Any, Literal

Sight = Literal["autocast", "selective checkpointing", "reentrant checkpointing", "double backward"]


class Witness:
    """Notes which of torch's functions the program uses, from `start` to `stop`. Nothing stays patched afterwards,
    except below a patch of somebody else's.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.seen: set[Sight] = set()
        self._restore: list[Callable[[], None]] = []

    def start(self) -> None:
        import torch
        from torch.utils import checkpoint

        def entered(context: Any, *_: Any) -> None:
            # During backward, checkpointing enters what the forward pass had, and that may be gputune's.
            if hasattr(context, "by_gputune") or torch._C._current_graph_task_id() != -1:
                return
            # Models switch autocast off for parts of themselves, which is no use of it.
            if getattr(context, "_enabled", True) and getattr(context, "device", self.device) == self.device:
                self.seen.add("autocast")

        self._follow(torch.autocast, "__enter__", entered)
        self._follow(checkpoint, "_CachingTorchDispatchMode.__init__", self._note("selective checkpointing"))
        self._follow(checkpoint, "CheckpointFunction.forward", self._note("reentrant checkpointing"))

    def stop(self) -> None:
        while self._restore:
            self._restore.pop()()

    def _note(self, sight: Sight) -> Callable[..., None]:
        return lambda *_, **__: self.seen.add(sight)

    def _follow(self, holder: Any, path: str, note: Callable[..., None]) -> None:
        """Call `note` with the arguments of each call of a function, where this torch has it."""
        *owners, name = path.split(".")
        for owner in owners:
            holder = getattr(holder, owner, None)
        original = vars(holder).get(name) if holder is not None else None
        if original is None:
            return
        static = isinstance(original, staticmethod)
        function = original.__func__ if static else original

        def followed(*inputs: Any, **named: Any) -> Any:
            note(*inputs, **named)
            return function(*inputs, **named)

        patch = staticmethod(followed) if static else followed
        setattr(holder, name, patch)
        self._restore.append(lambda: setattr(holder, name, original) if vars(holder)[name] is patch else None)
