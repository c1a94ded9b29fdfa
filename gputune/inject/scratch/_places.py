"""Where a path of the user's lies in the scratch folder, and functions that are given such paths."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Places:
    """Paths below `folder`: /home/u/run/a.pt lies at FOLDER/home/u/run/a.pt. Links are not followed."""

    def __init__(self, folder: str) -> None:
        self._folder = _absolute(folder)

    def written(self, path: Any) -> Any:
        """The place to write to instead of a path; its folder is there. What is no local path is returned as it is."""
        text = self._local(path)
        if text is None:
            return path
        place = self._place(text)
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        return _as(path, place)

    def read(self, path: Any) -> Any:
        """The place to read from: the scratch folder's, if something was written there, else the user's own."""
        text = self._local(path)
        if text is None:
            return path
        place = self._place(text)
        return _as(path, place) if Path(place).exists() else path

    def users(self, path: Any) -> Any:
        """The user's own path of one in the scratch folder."""
        text = self._local(path)
        if text is None or not self._is_ours(text):
            return path
        return _as(path, text[len(self._folder) :])

    def _place(self, text: str) -> str:
        return text if self._is_ours(text) else self._folder + text

    def _is_ours(self, text: str) -> bool:
        return text == self._folder or text.startswith(self._folder + os.sep)

    def _local(self, path: Any) -> str | None:
        """The absolute path; None for a file object, a number, and an address such as s3://bucket."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        text = os.fsdecode(path)
        return None if "://" in text or not text else _absolute(text)


def _absolute(text: str) -> str:
    return os.path.abspath(text)  # noqa: PTH100 - Path.resolve would follow links


def _as(path: Any, place: str) -> Any:
    """The place in the type of the path that it is for."""
    if isinstance(path, bytes):
        return os.fsencode(place)
    return place if isinstance(path, str) else type(path)(place)


def reroute(holder: Any, name: str, parameter: str, place: Callable[[Any], Any]) -> None:
    """Have a function, or a method of a class, get another path as this parameter, wherever the function is known."""
    original = vars(holder).get(name) if isinstance(holder, type) else getattr(holder, name, None)
    if original is None:
        return
    number = list(inspect.signature(original).parameters).index(parameter)

    @functools.wraps(original)
    def rerouted(*inputs: Any, **named: Any) -> Any:
        if len(inputs) > number:
            inputs = (*inputs[:number], place(inputs[number]), *inputs[number + 1 :])
        elif parameter in named:
            named = {**named, parameter: place(named[parameter])}
        return original(*inputs, **named)

    setattr(holder, name, rerouted)
    if isinstance(holder, type):
        return
    package = holder.__name__.partition(".")[0]
    for module in [module for known, module in sys.modules.items() if known.partition(".")[0] == package]:
        if vars(module).get(name) is original:
            setattr(module, name, rerouted)
