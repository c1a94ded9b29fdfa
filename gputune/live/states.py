"""What a model's call changes besides its output, so that a call that failed can be made again as if it never had been:
random states, buffers, the attributes of its modules, and its inputs.

What a forward does to a global variable, or deep inside of an object of the program's own, cannot be seen; nor can that
it draws random numbers, if it did not in the first calls.
"""

import io
import random
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..knobs._called import PLACE
from ..knobs._outputs import tensors
from ..knobs._random import common_sources, draws, is_state
from ..knobs._signals import is_for_the_program
from .before import Before
from .containers import CONTAINERS, container, copy_of, digest, elements, is_as
from .held import Attribute, Held, containers_in, reached
from .reach import variables

WHOLE = 2
"""Before so many calls everything is copied, which shows what moves at all. Buffers are too many to be copied for each
later call: how often they were written to, which torch counts, then tells whether they moved."""
WRITES = "its calls change its weights"
UNSEEN = "its calls write to tensors through .data, which torch does not count"
CHANGES_DEEP = "its calls change what lies deep in its attributes or inputs"
MOST_BYTES = 2**28
"""Parameters are copied where all of a model take no more: more would raise the peak of memory by too much."""
Place = tuple["weakref.ref[Any]", str | None]
"""Where a container stands: the attribute of a module, or the attributes of a module themselves."""


class States:
    def __init__(self, model: Callable[[], Any], device: str) -> None:
        """`model` returns the model, and `device` is the type of device that it draws random numbers on. The model is
        not kept alive: without a reference of its own it is freed at once, as plain ones are.
        """
        self._model, self._device = model, device
        self._left = WHOLE
        self._moving: list[Place] = []
        """The containers that moved in calls, and so are copied before each call."""
        self._usual: dict[Place, int] = {}
        """Digests of the others."""
        self._sources: list[Any] = []
        """The sources of random numbers that moved in calls."""
        self._buffers: list[Any] = []
        self.changes_numbers = False
        """Whether a call that everything was kept of changed numbers that the model holds, or drew from `random`, a
        random.Random or NumPy's global random numbers.
        """
        self.computed: tuple[list[Attribute], str | None] = [], None
        """What the last such call has left in the model (`Held`)."""
        self.changes_weights = False
        """Whether such a call wrote to the model's weights."""
        self.changes_gradients = False
        """Whether such a call changed their gradients."""
        self._never: str | None = None
        """Why no call can be made again."""
        self._later: str | None = None
        """Why no call can be of which not everything was kept."""

    def begin_again(self) -> None:
        """Keep everything of the next calls."""
        self._left = WHOLE

    def before_call(self, inputs: Sequence[Any]) -> Before | None:
        """What the call may change; None if it cannot be read, as while CUDA captures a graph."""
        try:
            if self._left:
                self._left -= 1
                return self._everything(inputs)
            containers = [(place, one, copy_of(one)) for place, one in found_at(self._moving)]
            return Before(inputs, containers + _given(inputs), self._sources, _tensors(inputs) + self._buffers)
        except Exception as error:
            if is_for_the_program(error):
                raise
            return None

    def after_call(self, before: Before | None) -> None:
        """Learn what moves from a call that returned, if everything was kept."""
        from torch.nn import Parameter

        if before is None or before.held is None:
            return
        own = [(place, one, kept) for place, one, kept in before.containers if place]
        moved = [place for place, one, kept in own if not is_as(one, kept)]
        self._moving = list(dict.fromkeys([*self._moving, *moved]))
        self._usual = {place: digest(one) for place, one, _ in own if place not in self._moving}
        known = {id(one) for one in self._sources}
        self._sources += [one for one, kept in before.sources if id(one) not in known and not is_state(one, kept)]
        self.changes_numbers |= any(map(_is_of_numbers, self._sources))
        self.changes_numbers |= before.held.has_other_numbers(self._model())
        self.computed = before.held.computed(self._model())
        written = before.written()
        self.changes_weights |= before.weighs_otherwise() or any(isinstance(one, Parameter) for one, *_ in written)
        self.changes_gradients |= before.has_other_gradients()
        told = _told_by_a_count(self._model())
        unseen = UNSEEN if any(not counted and id(one) not in told for one, counted, _ in written) else None
        deep = CHANGES_DEEP if any(not is_as(one, kept) for one, kept in before.deep) else None
        self._later = WRITES if self.changes_weights else self._later or unseen or deep

    def put_back(self, before: Before | None) -> str | None:
        """Put everything back as it was. If that cannot be done, nothing is put back: the reason."""
        if before is None:
            return "what it changes cannot be read"
        if never := self._never or (self._later if before.weights is None else None):
            return never
        if has_iterator(before.inputs):
            return "an iterator is among its inputs"
        if before.has_moved():
            return "its buffers, gradients or inputs have changed"
        places = () if before.weights is not None else self._usual.keys() - set(self._moving)
        if any(digest(one) != self._usual[place] for place, one in found_at(places)):
            return "its attributes have changed"
        before.put_back()
        return None

    def _everything(self, inputs: Sequence[Any]) -> Before | None:
        import torch
        from torch.nn.parameter import is_lazy

        if self._device == "cuda" and torch.cuda.is_current_stream_capturing():  # which a look at the GPU ends
            return None
        model = self._model()
        containers = list(_containers(model))
        values = [value for _, one in containers for value in elements(one)]
        found = [*model.buffers(), *model.parameters(), *(one for one in values if isinstance(one, torch.Tensor))]
        usual = {id(one): one for one in found if not is_lazy(one) and not one.is_inference()}.values()
        weights = [one for one in usual if isinstance(one, torch.nn.Parameter)]
        # What is computed is none: it would keep its graph alive.
        self._buffers = [one for one in usual if not isinstance(one, torch.nn.Parameter) and one.grad_fn is None]
        self._never = "it holds an iterator" if any(map(is_iterator, values)) else self._never
        held = Held(model)
        drawing = filter(draws, (*held.reached, *reached(inputs), *variables(model).values()))
        found = [*self._sources, *common_sources(usual, self._device), *drawing]
        sources = list({id(one): one for one in found}.values())
        kept = [(place, one, copy_of(one)) for place, one in containers]
        before = Before(inputs, kept + _given(inputs), sources, _tensors(inputs) + self._buffers)
        copied = [one for one in weights if type(one) is torch.nn.Parameter]
        if sum(one.nbytes for one in copied) > MOST_BYTES:
            copied = []
        known = set(map(id, copied))
        before.keep_everything(copied, [one for one in weights if id(one) not in known])
        before.held = held
        own = {id(one) for _, one in containers}
        before.deep = [
            (one, copy_of(one)) for one in containers_in((*before.held.values, *inputs)) if id(one) not in own
        ]
        return before


def _is_of_numbers(source: Any) -> bool:
    """Whether it is a source of Python's or NumPy's random numbers that torch.compile would replace by others."""
    return source in (random, sys.modules.get("numpy.random")) or isinstance(source, random.Random)


def _told_by_a_count(model: Any) -> set[int]:
    """BatchNorms' statistics: torch does not count that these are written to, but they have their calls counted."""
    from torch.nn.modules.batchnorm import _BatchNorm

    norms = (one for one in model.modules() if isinstance(one, _BatchNorm) and one.num_batches_tracked is not None)
    return {id(buffer) for one in norms for buffer in (one.running_mean, one.running_var)}


def found_at(places: Iterable[Place]) -> Iterator[tuple[Place, Any]]:
    """The containers that stand at these places now."""
    for module, name in places:
        own = getattr(module(), "__dict__", None)  # that of a module which is gone is None
        one = own if name is None or own is None else container(own.get(name))
        if one is not None:
            yield (module, name), one


def iterator_in(model: Any) -> bool:
    """Whether a model holds an iterator, from which a call that is made again would take something else."""
    return any(is_iterator(value) for _, one in _containers(model) for value in elements(one))


def has_iterator(inputs: Iterable[Any]) -> bool:
    return any(map(is_iterator, reached(inputs)))


def is_iterator(one: Any) -> bool:
    return hasattr(type(one), "__next__") and not isinstance(one, io.IOBase)  # which is written to rather than read


def _containers(model: Any) -> Iterator[tuple[Place, Any]]:
    """The attributes of all modules, with the containers and the attributes of objects in there."""
    for module in model.modules():
        reference, own = weakref.ref(module), vars(module)
        yield (reference, None), own
        for name, value in own.items():
            if name != PLACE and (found := container(value)) is not None:
                yield (reference, name), found


def _given(inputs: Sequence[Any]) -> list[tuple[None, Any, Any]]:
    found = [one for given in inputs for one in (given, *elements(given))]
    return [(None, one, copy_of(one)) for one in found if type(one) in CONTAINERS]


def _tensors(inputs: Sequence[Any]) -> list[Any]:
    import torch

    return [one for given in inputs for one in ((given,) if isinstance(given, torch.Tensor) else tensors(given))]
