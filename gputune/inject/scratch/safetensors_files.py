"""Files of safetensors: all of its ways to save go through `serialize_file`, and those to load through `safe_open`."""

import functools
import sys
from types import ModuleType
from typing import Any

from ._places import Places

MODULES = ("safetensors",)


def redirect(module: ModuleType, places: Places) -> None:
    for name, place in (("serialize_file", places.written), ("safe_open", places.read)):
        original = getattr(module, name)
        at = 1 if name == "serialize_file" else 0

        @functools.wraps(original, updated=())
        def rerouted(*inputs: Any, _original: Any = original, _at: int = at, _place: Any = place, **named: Any) -> Any:
            if len(inputs) > _at:
                inputs = (*inputs[:_at], _place(inputs[_at]), *inputs[_at + 1 :])
            elif "filename" in named:
                named = {**named, "filename": _place(named["filename"])}
            return _original(*inputs, **named)

        for known in [one for word, one in sys.modules.items() if word.partition(".")[0] == "safetensors"]:
            if vars(known).get(name) is original:
                setattr(known, name, rerouted)
