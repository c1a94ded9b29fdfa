"""What a program finds in a model, and what its hooks get, is in FP32 as without mixed precision.

The watched step shows where a call leaves tensors (`held`). Other calls may leave some elsewhere: the code of the
forward tells where it may. A hook that comes later turns mixed precision off.
"""

import weakref
from collections.abc import Iterator
from functools import cache
from typing import Any

from .. import observer
from ..containers import CONTAINERS
from ..held import Attribute
from ..reach import methods, names
from . import Found


class HookOnHalf(Found):
    """A hook would get half precision."""

    setting = "amp_dtype"


class Hooks(observer.Follower):
    """Turns mixed precision off in a model that gets a hook while it is on."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def activation_hooked(self, activation: Any) -> None:
        """Raises HookOnHalf within the forward, which is then made again in FP32."""
        call = self._call()
        if call and call.is_cast and activation.dtype == call.dtype and activation.grad_fn is not None:
            raise HookOnHalf("its forward puts a hook on an activation, which would get half precision")

    def module_hooked(self, module: Any) -> None:
        if self._call() and (module is None or any(module is one for one in self._root.model.modules())):
            observer.leave(self)
            self._root.refuse(["amp_dtype"], "a module has got a hook, which would get half precision")

    def _call(self) -> Any:
        """The model's call, if mixed precision is on in it now."""
        if self._root.model is None:
            observer.leave(self)
            return None
        return self._root.call if self._root.call.dtype is not None else None


def places(model: Any) -> Iterator[Attribute]:
    """Where the forwards of a model's modules store something, by their code, or change a container that is there."""
    for module in model.modules():
        kind: Any = type(module)
        stored, read = _names(kind)
        own, reference = vars(module), weakref.ref(module)
        for name in stored:
            yield reference, "_buffers" if name in module._buffers else "__dict__", name
        yield from ((reference, "__dict__", name) for name in read - stored if type(own.get(name)) in CONTAINERS)


@cache
def _names(kind: Any) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes that the code of a forward stores, and those it reads."""
    stored = [names(one, "STORE_ATTR") for one in methods(kind)]
    read = [names(one, "LOAD_ATTR", "LOAD_METHOD") for one in methods(kind)]
    return frozenset().union(*stored), frozenset().union(*read)
