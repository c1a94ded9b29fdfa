"""Whatever a program sets TF32 and cuDNN's search to later, it has exactly what it has without gputune.

torch 2.9 and newer has a tree of precisions beside its older flags. gputune's value stands in both, at single
operations, so it would hide what the program sets at a parent, and contradict what it sets in one of the two alone.
Therefore torch's setters are wrapped once gputune has set such a flag: right before the program sets it, at any level,
gputune's value is undone, and from then on the flag is the program's. Only if a program next sets back what it has set,
as context managers do, is gputune's value set again.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...knobs import Knob, Value, name_of
from ...knobs._setters import SET_BENCHMARK, is_written_by_us
from ...knobs._tf32 import SET_CUDNN, SET_NODE, SETTERS, set_node
from ..patches import Function, Undo, replaced, together

_flags: dict[str, "_Flag"] = {}
"""By setting, the flags that gputune has set."""
_wrapping: list[Undo] = []
"""What undoes the wrap of torch's setters, once they are wrapped."""


class _Flag:
    def __init__(self, knob: Knob) -> None:
        self.knob, self.is_the_programs = knob, False
        self._undo: Callable[[Sequence[Any]], None] = knob.undoing()
        self._value: Value = None
        self._back: tuple[str, tuple[Any, ...]] | None = None
        """The program's call that would set back the only thing that it has set."""
        self._same: list[tuple[Any, ...]] = []
        """What the program has set nodes to, where gputune had set the same."""

    def setting(self, setter: str, given: tuple[Any, ...]) -> bool:
        """The program is about to set a flag. Returns whether gputune's value is to be set again after it."""
        if not self.knob.chooses(setter, given):
            return False
        before = _before(setter, given)
        if setter == SET_NODE and given == before:
            self._same += [] if self.is_the_programs else [given]
            return False
        if self.is_the_programs:
            back, self._back = self._back, None
            return (setter, given) == back
        self._value, self.is_the_programs = self.knob.current(), True
        self._back = None if before in (given, None) else (setter, before)
        self.undo(given)
        return False

    def undo(self, given: tuple[Any, ...] = ()) -> None:
        self._undo(given)
        for one in self._same:
            set_node(*one)

    def set_again(self) -> None:
        self.is_the_programs = False
        self.knob.apply(self._value)


def follow(knob: Knob) -> None:
    """Have the program's own later settings of a flag win. It is called before gputune sets the flag."""
    if not _wrapping:
        _wrapping.append(setters_wrapped())
    if name_of(knob) not in _flags:
        _flags[name_of(knob)] = _Flag(knob)


def set_back(name: str) -> bool:
    """Undo gputune's value of a flag. Returns whether it was in force."""
    if name not in _flags or _flags[name].is_the_programs:
        return False
    _flags.pop(name).undo()
    return True


def is_the_programs(name: str) -> bool:
    """Whether the program has set this flag since gputune did."""
    return name in _flags and _flags[name].is_the_programs


def setters_wrapped() -> Undo:
    """Wrap torch's setters. All of torch's Python looks them up in `torch._C`, but for properties that keep theirs."""
    import torch

    made: list[Undo] = []
    for name in (*SETTERS, SET_BENCHMARK):
        if hasattr(torch._C, name):
            made.append(replaced(torch._C, name, _wrapped(name, getattr(torch._C, name))))
    for name, setter in (("allow_tf32", SET_CUDNN), ("benchmark", SET_BENCHMARK)):
        kept: Any = vars(type(getattr(torch.backends, "cudnn", None))).get(name)
        if hasattr(kept, "setter"):
            made.append(replaced(kept, "setter", getattr(torch._C, setter)))
    return together(made)


def _wrapped(name: str, original: Function) -> Function:
    @functools.wraps(original)
    def setter(*given: Any) -> Any:
        # torch.compile sets back what it found, whether or not it has changed.
        if is_written_by_us() or sys._getframe(1).f_globals.get("__name__", "").startswith("torch._dynamo"):
            return original(*given)
        again = [flag for flag in _flags.values() if flag.setting(name, given)]
        answer = original(*given)
        for flag in again:
            flag.set_again()
        return answer

    setter._torchdynamo_disable = True  # type: ignore[attr-defined]  # as little traced as what it wraps
    return setter


def _before(setter: str, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with which a setter would set what is so already; None if torch does not tell."""
    import torch

    places = given[:-1]
    try:
        return *places, getattr(torch._C, setter.replace("set", "get"))(*places)
    except RuntimeError:
        return None
