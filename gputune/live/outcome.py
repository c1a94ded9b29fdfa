"""The outcome of each setting in a program's models: one row for all of them, and the line that tells it."""

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import knobs
from ..knobs import Value
from .advice import TunedProgram
from .applied import Applied, Reason, Why, is_one
from .models import has_images
from .root import Root
from .states import iterator_in

PROVISIONAL = (
    Reason.NO_STEP, Reason.CAPTURES, Reason.FEW_CALLS, Reason.NO_MODEL, Reason.MANY_MODELS, Reason.OTHER_MODELS,
    Reason.NO_LOADER,
)  # fmt: skip
"""Reasons of a row that stands only as long as nothing is known of any model."""

OLDEST_TORCH = (2, 4)
Rows = dict[tuple["weakref.ref[Any] | None", bool], tuple[Applied, str]]
"""By model, and by whether the setting is in there: rows with the models' names."""


class Outcome:
    """Rows by setting. Those that are `expected` are there from the start."""

    def __init__(self, expected: Iterable[str], why: Why | str) -> None:
        """`why` is why nothing was put in as long as nothing is known of any model."""
        self._expected, self._why = tuple(expected), why
        self.rows = {name: left(name, why) for name in self._expected}
        self._added: dict[str, Rows] = {}
        """By setting, the rows that its row was made of."""

    def begin_again(self) -> None:
        """Forget what became of the expected settings, after they were taken out of the program again."""
        self.rows.update({name: left(name, self._why) for name in self._expected})

    def nothing(self, why: Why | str) -> None:
        """Why nothing was put in, where nothing is known of any model so far."""
        provisional = [name for name, row in self.rows.items() if row.because(*PROVISIONAL) is not None]
        self.rows.update({name: left(name, why) for name in provisional})

    def settle(self) -> None:
        """Models are known by now: what is not for their kinds has no row any more."""
        self.rows = {name: row for name, row in self.rows.items() if row.because(*PROVISIONAL) is None}

    def add(self, row: Applied, model: Any, name: str) -> None:
        """Where models have different rows of a setting, it is applied if it is in one, and all reasons are kept, but
        for why a model did not have it before it had it.
        """
        before = self.rows.get(row.setting)
        if before is None or before.because(*PROVISIONAL) is not None:
            self._added[row.setting] = {}
        rows, has_it, place = self._added[row.setting], row.status == "applied", weakref.ref(model)
        rows[place, has_it] = row, name
        if has_it:
            rows.pop((place, False), None)
        self.rows[row.setting] = _merged(rows)

    def replace(self, row: Applied) -> None:
        self.rows[row.setting] = row
        self._added[row.setting] = {(None, row.status == "applied"): (row, "")}


def too_old() -> str | None:
    """Why nothing is put into any program with this torch; None if something may be."""
    import torch

    version = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
    return f"torch {torch.__version__} is older than 2.4" if version < OLDEST_TORCH else None


def left(name: str, why: Why | str, users: bool = False) -> Applied:
    """The row of a setting that was not put in, because the program does it itself if `users`."""
    if users:
        return Applied(setting=name, status="kept-user", source="program", reasons=(why,))
    return Applied(setting=name, status="skipped", source="torch", reasons=(why,))


def obstacle(root: Root, name: str, value: Value) -> Applied | None:
    """The row that says why a setting is not turned on in a model; None if it can be."""
    knob = knobs.load(name)
    if "images" in getattr(knob, "NEEDS", ()) and not has_images(root.model):
        return left(name, Reason.NO_IMAGES())
    if knob.IN_CALLS and iterator_in(root.model):
        return left(name, "it holds an iterator, so a call that fails could not be repeated")
    if knob.IN_CALLS and root.seen.trains:
        return left(name, "its forward trains it, so a call that fails could not be repeated")
    if knob.IN_CALLS and root.seen.uncopied:
        return left(name, f"it returns a {root.seen.uncopied}, which cannot be copied")
    if knob.IN_CALLS and "gradients of outputs" in root.features:
        return left(name, "the program takes gradients of what its calls compute, on which other outputs may rest")
    found = knob.obstacle(root, value)
    return left(name, found.why, found.users) if found else None


def _merged(rows: Rows) -> Applied:
    """Why an applied setting is not in a model is said with the model's name, and not if it is for images only."""
    put = [row for (_, has_it), (row, _) in rows.items() if has_it]
    reasons = [why for row in put for why in row.reasons]
    models = dict.fromkeys(name for why in reasons if is_one(why, Reason.PUT_IN) for name in why.arguments)
    others = [why for why in reasons if not is_one(why, Reason.PUT_IN)]
    for (place, has_it), (row, model) in rows.items():
        if not has_it:
            other = f"another {model}" if model in models and (place, True) not in rows else model
            named = [f"not into {other}: {why}" for why in row.reasons if not is_one(why, Reason.NO_IMAGES)]
            others += named if put and model else row.reasons
    first = (put or [row for row, _ in rows.values()])[0]
    given = (*([Reason.PUT_IN(*models)] if models else []), *dict.fromkeys(others))
    return replace(first, before=None, reasons=given) if len(rows) > 1 else first


def line(rows: Mapping[str, Applied], roots: Sequence[Root], tuned: TunedProgram | None) -> str:
    """What was put into these models, what was not and why, and how this run differs from the tuned one."""
    models = ", ".join(dict.fromkeys(f"{root.name} ({root.family})" if root.family else root.name for root in roots))
    put = [_put(row, [root.name for root in roots]) for row in rows.values() if row.status == "applied"]
    left = [
        f"{row.setting} ({row.why})"
        for row in rows.values()
        if row.status != "applied" and row.because(Reason.NO_IMAGES) is None
    ]
    words = f"put into {models}: {', '.join(put)}" if put else f"nothing put into {models}"
    if left:
        words += f"; left: {', '.join(left)}"
    elif not put:
        words += ": the profile has nothing for it here"
    return "; ".join([words, *_differences(roots, tuned)])


def _put(row: Applied, models: Sequence[str]) -> str:
    said = row.setting if row.after is True else f"{row.setting} {row.after}"
    words = [str(why) for why in row.reasons if not is_one(why, Reason.PUT_IN)]
    holders = row.because(Reason.PUT_IN) or ()  # models, or "DataLoader"
    without = dict.fromkeys(name for name in models if name not in holders)
    unsaid = [name for name in without if not any(word.startswith(f"not into {name}: ") for word in words)]
    if unsaid and len(without) < len(set(models)):
        words.insert(0, f"not into {', '.join(unsaid)}")
    return f"{said} ({'; '.join(words)})" if words else said


def _differences(roots: Sequence[Root], tuned: TunedProgram | None) -> list[str]:
    if tuned is None:
        return []
    ranks = int(os.environ.get("WORLD_SIZE") or 1)
    what = "loss was" if tuned.trains else "outputs were"
    unguarded = [f"its {what} not compared with FP32's when it was tuned"] if tuned.unguarded else []
    words = [f"tuned with {tuned.world_size} ranks, and these are {ranks}"] if ranks != tuned.world_size else []
    shapes = tuple(shape for root in roots for shape in root.seen.shapes)
    if tuned.shapes and shapes != tuned.shapes:
        words += [f"tuned with inputs of {_shapes(tuned.shapes)}, and these are {_shapes(shapes)}"]
    return words + unguarded


def _shapes(shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join("x".join(map(str, shape)) or "one number" for shape in shapes)
