"""What a model keeps of its calls in half precision: in attributes, buffers, and containers that it holds. The program
finds it in FP32 there, as without mixed precision.
"""

from contextlib import suppress
from typing import Any

from ..knobs._outputs import Uncopied, restored, tensors
from .states import Before, Place, elements, found_at


class Halves:
    def __init__(self) -> None:
        self._places: dict[tuple[Place, str | None], None] = {}
        """The containers, each with a name if it holds a module's own attributes or buffers."""

    def restore(self, before: Before | None, half: Any) -> None:
        """Have what a call has left in the dtype `half`, if that is not None, in FP32. The calls that everything was
        kept of show where it is.
        """
        if half is None:
            return
        for place, one, kept in before.containers if before is not None and before.weights is not None else ():
            if place is not None and not isinstance(kept, int):
                known = set(map(id, elements(kept)))
                self._learn(place, [pair for pair in _items(one) if id(pair[1]) not in known], half)
        for place, name in self._places:
            for _, one in found_at([place]):
                for key, value in _items(one):
                    if name in (None, key):
                        with suppress(Uncopied):
                            one[key] = restored(value, half)

    def _learn(self, place: Place, new: list[tuple[Any, Any]], half: Any) -> None:
        is_a_modules = place[1] in (None, "_buffers")
        found = [name for name, value in new if any(one.dtype == half for one in tensors(value))]
        self._places.update(dict.fromkeys((place, name if is_a_modules else None) for name in found))


def _items(one: Any) -> list[tuple[Any, Any]]:
    """The elements of a container that may be replaced by others, with their keys."""
    if isinstance(one, set):
        return []
    return list(one.items() if isinstance(one, dict) else enumerate(one))
