"""Puts settings that take lines of a script into a program that has none: what is found, decided, done and said.

The program's first training step is left as it is. After it, `Watch` looks on until the same optimizer has stepped
again, and then the hands go to work on the models that it found. An optimizer that appears later starts this anew.
In a program that trains nothing its models' calls take the place of these steps, and only what was tuned for it is put
in.
"""

from __future__ import annotations

import multiprocessing
import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import knobs
from ..knobs import Value
from . import applied
from .advice import Advice, Tuned, Values, entry
from .applied import Applied, Reason, Why
from .call import Suspect
from .inference import Answering, usual_mode
from .models import family, key
from .outcome import Outcome, left, line, obstacle
from .root import Root, found_roots, is_ddp, root_of
from .watch import Seen, Watch

MOST_MODELS = 32
"""A program that calls more modules from outside than this calls its layers one by one."""
PATIENCE = 3
"""So many steps of an optimizer are watched for a model. A step that calls its parent class's counts as two."""
OLDEST_TORCH = (2, 4)

Say = Callable[[str], None]


class Injection:
    def __init__(self, advice: Advice, set_flag: Callable[[str, Value], Applied], say: Say) -> None:
        self.advice = advice
        trains = all(program.trains for program in advice.programs)
        self._outcome = Outcome(self._expected(), Reason.NO_STEP() if trains else Reason.FEW_CALLS())
        self._set_flag, self._say = set_flag, say
        self._watch = Watch(advice.device)
        self._answering = Answering(advice.device, self._put_in, self._give_up)
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._awaited: weakref.ref[Any] | None = None
        self._patience = PATIENCE
        self._tuned: Tuned | None = None
        self._done: weakref.WeakSet[Any] = weakref.WeakSet()
        self._converted: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def rows(self) -> dict[str, Applied]:
        return self._outcome.rows

    def note(self, row: Applied) -> None:
        """Remember what became of a setting outside the models."""
        self._outcome.replace(row)

    def start(self) -> None:
        import torch
        from torch.nn.modules.module import register_module_module_registration_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) < OLDEST_TORCH:
            self._outcome.nothing(f"torch {torch.__version__} is older than 2.4")
            return
        register_optimizer_step_post_hook(self._stepped)
        if not all(program.trains for program in self.advice.programs):
            self._answering.start()
        if any(values.get("channels_last") for values in self._all_values()):
            register_module_module_registration_hook(self._wrapped)

    def _all_values(self) -> list[Values]:
        return [
            self.advice.general,
            *self.advice.families.values(),
            *(one.settings for one in self.advice.programs),
        ]

    def _expected(self) -> list[str]:
        values = [(name, one.get(name)) for one in self._all_values() for name in knobs.in_models()]
        return sorted({name for name, value in values if not knobs.is_default(knobs.load(name), value)})

    def _nothing(self, why: Why | str) -> None:
        self._outcome.nothing(why)
        if self.advice.for_any and not self.advice.quiet and _speaks():
            self._say(f"nothing was put into the program: {why}")

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._awaited is None and optimizer in self._optimizers:
            return
        try:
            self._follow(optimizer)
        except Exception as error:
            self._give_up(error)

    def _follow(self, optimizer: Any) -> None:
        if self._answering.undo():
            self._done.clear()
            self._outcome.begin_again()
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            if self._awaited is None or self._awaited() is None:
                self._awaited, self._patience = weakref.ref(optimizer), PATIENCE
                self._watch.start()
        elif self._awaited is not None and self._awaited() in (optimizer, None):
            self._patience -= 1
            if self._patience and not self._watch.seen:
                return
            self._awaited = None
            self._watch.stop()
            self._put_in(self._watch)

    def _give_up(self, error: Exception) -> None:
        self._awaited = None
        self._watch.stop()
        self._answering.stop()
        self._say(f"nothing was put into the program: {type(error).__name__}: {error}")

    def _wrapped(self, wrap: Any, _: str, model: Any) -> None:
        """Before DistributedDataParallel has looked at the model that it is to wrap."""
        if not is_ddp(wrap):
            return
        try:
            self._convert(wrap, model)
        except Exception as error:
            self._say(f"channels_last was not put in: {type(error).__name__}: {error}")

    def _convert(self, wrap: Any, model: Any) -> None:
        from ..knobs import channels_last

        seen = Seen(model=weakref.ref(model), shapes=[])
        root = root_of(self._watch, model, seen, self._optimizers, self.advice.device)
        root.converted, root.failed = model in self._converted, self._failed
        tuned = self.advice.program([_key(model)])
        values = tuned.settings if tuned else self.advice.by_family(family(model))
        if not values.get("channels_last") or root.left_alone() or obstacle(root, "channels_last", True):
            return
        channels_last.convert(model)
        self._converted.add(wrap)
        # The wrap's own call is guarded from its first time on.
        root.model, root.converted = wrap, True
        channels_last.turn_on(root, True)
        self._guard(root, "channels_last", channels_last, True)

    def _put_in(self, watch: Watch) -> None:
        with usual_mode():
            roots = []
            for root in found_roots(watch, self._optimizers, self.advice.device):
                root.converted, root.failed = root.model in self._converted, self._failed
                if root.model in self._done:
                    self._into(root, self._tuned, ["fused_optimizer"])  # it has an optimizer more than before
                else:
                    roots.append(root)
            if roots and len(roots) <= MOST_MODELS:
                self._put_into(roots)
            elif not self._done:
                self._nothing(Reason.MANY_MODELS(len(roots)) if roots else Reason.NO_MODEL())

    def _put_into(self, roots: list[Root]) -> None:
        trains = all(root.gradients for root in roots)
        tuned = self.advice.program([_key(root.model) for root in roots], trains=trains)
        if tuned is None and not (trains and self.advice.for_any):
            self._outcome.nothing(Reason.OTHER_MODELS())
            if self.advice.tuned_as(entry()):
                self._report(roots, None)
            return
        self._tuned = tuned
        self._done.update(root.model for root in roots)
        for name, value in (tuned.settings if tuned else {}).items():
            if name not in knobs.in_models():
                row = self._set_flag(name, value)
                if not trains and row.status == "applied":
                    self._answering.undo_by(partial(self._set_flag, name, row.before))
                as_tuned = row.status == "applied" and value == knobs.load(name).DEFAULT
                self._outcome.replace(row.and_because("as it was tuned") if as_tuned else row)
        for root in roots:
            self._into(root, tuned, knobs.in_models())
        self._outcome.settle()
        self._report(roots, tuned)

    def _into(self, root: Root, tuned: Tuned | None, names: list[str]) -> None:
        if tuned and _key(root.model) not in tuned.models:
            return
        values = tuned.settings if tuned else self.advice.by_family(root.family)
        alone = root.left_alone()
        for name in names:
            value = values.get(name)
            if knobs.is_default(knobs.load(name), value):
                continue
            self._outcome.add(self._hand(root, name, value) if alone is None else left(name, alone))

    def _hand(self, root: Root, name: str, value: Value) -> Applied:
        hand = knobs.load(name)
        try:
            if row := obstacle(root, name, value):
                return row
            put = hand.turn_on(root, value)
            root.claim()
        except Exception as error:
            self._say(f"{name} was not put into {root.name}: {type(error).__name__}: {error}")
            return applied.failed(name, applied.error(error))
        self._guard(root, name, hand, value)
        if not root.gradients:
            self._answering.undo_by(root.call.acquit, partial(hand.turn_off, root))
        reasons: tuple[Why | str, ...] = (Reason.PUT_IN(root.name),)
        if put != value and value is not True:
            reasons += ("bfloat16 instead of float16, which needs a loss scaler",)
        return Applied(setting=name, after=put, status="applied", source="profile", reasons=reasons)

    def _guard(self, root: Root, name: str, hand: Any, value: Value) -> None:
        if not hand.IN_CALLS:
            return
        root.call.suspect(
            Suspect(
                take_out=lambda: _usually(hand.turn_off, root),
                put_back=lambda: _usually(hand.turn_on, root, value),
                failed=lambda error: self._failed(name, f"its call failed with it: {applied.error(error)}"),
            )
        )

    def _failed(self, name: str, why: Why | str) -> None:
        self._outcome.replace(applied.failed(name, why))
        self._say(f"{name} was taken out again: {why}")

    def _report(self, roots: list[Root], tuned: Tuned | None) -> None:
        if not self.advice.quiet and _speaks():
            self._say(line(self.rows, roots, tuned))


def _usually(work: Callable[..., Any], *given: Any) -> None:
    with usual_mode():
        work(*given)


def _key(model: Any) -> tuple[str, str]:
    found = key(model)
    return found.class_name, found.digest


def _speaks() -> bool:
    """Whether this process is the one of a job that tells: rank 0, or the first of several children."""
    import torch

    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return bool(distributed.get_rank() == 0)
    if "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")
