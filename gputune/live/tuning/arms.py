"""Switching the settings of a running program between two steps, back and forth.

What is put into models goes through the hands, and torch's flags through the settings; nothing is compiled twice, and
nothing is repeated where it fails: the whole run ends then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import knobs
from ...knobs import Value
from .. import applied
from ..applied import Applied, Reason
from ..inference import usual_mode
from ..outcome import left, obstacle
from ..root import Root

Values = Mapping[str, Value]


class Arms:
    """The settings in force in the models `roots` and in torch's flags; at first none."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self.roots = list(roots)
        self._now: dict[str, Value] = {}
        self._able: dict[str, list[Root]] = {}
        self._defaults: dict[str, Value] = {}
        """By flag, what it was before any was switched."""

    def obstacles(self, candidates: Values) -> dict[str, dict[str, Any]]:
        """By setting, the row of each candidate that cannot be put into any model, or whose flag the program set."""
        rows = {name: self._obstacle(name, value) for name, value in candidates.items()}
        return {name: row.plain for name, row in rows.items() if row is not None}

    def _obstacle(self, name: str, value: Value) -> Any:
        setting = knobs.load(name)
        if setting.PHASE != "code":
            current, default = setting.current(), knobs.default_of(setting)
            self._defaults[name] = default
            return applied.left_alone(setting, value, current, default, default)
        found: list[Applied] = []
        for root in self.roots:
            if alone := root.left_alone():
                found.append(left(name, alone))
            elif row := obstacle(root, name, value):
                found.append(row)
            else:
                self._able.setdefault(name, []).append(root)
        if name in self._able:
            return None
        return found[0] if found else left(name, Reason.NO_MODEL())

    def switch(self, values: Values) -> None:
        """Have exactly these settings in force, and torch's defaults for all others."""
        other_precision = self._now.get("amp_dtype") != values.get("amp_dtype")
        with usual_mode():
            for name in sorted(self._now.keys() - values.keys(), reverse=True):
                self._off(name)
            for name in sorted(values):
                # The compiled call is another one in another precision.
                if self._now.get(name) != values[name] or (name == "compile" and other_precision):
                    self._on(name, values[name])
        self._now = dict(values)

    def _on(self, name: str, value: Value) -> None:
        setting = knobs.load(name)
        if setting.PHASE != "code":
            setting.apply(value)
            return
        for root in self._able.get(name, []):
            knobs.load(name).turn_on(root, value)
            root.claim()

    def _off(self, name: str) -> None:
        setting = knobs.load(name)
        if setting.PHASE != "code":
            setting.apply(self._defaults[name])
            return
        for root in self._able.get(name, []):
            knobs.load(name).turn_off(root)

    def watch(self, raised: Any) -> None:
        """Have `raised` called with what a model's call raises while anything is in force."""

        def of_an_arm(error: BaseException) -> None:
            if self._now:
                raised(error)

        for root in self.roots:
            root.call.raised = of_an_arm
            root.claim()
