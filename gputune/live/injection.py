"""Puts settings that take lines of a script into a program that has none: what is found, decided, done and said.

The program's first training step is left as it is. After it, a `ModelFinder` looks on until the same optimizer has
stepped again, and then settings are turned on in the models that it found. An optimizer that appears later starts this
anew. In an inference-only program its models' calls take the place of these steps, and only what was tuned for it is
turned on. If an optimizer steps later, that is turned off again.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from .. import knobs
from ..knobs._signals import is_for_the_program
from ..knobs.dataloader_workers import WORKERS
from . import likeness, observer
from .advice import Advice, TunedProgram, Values, entry, speaks
from .applied import Applied, Reason, Why
from .finding import ModelFinder, Seen
from .flags import failed
from .installer import Installer, SetFlag
from .iterations import Iterations
from .models import family, key, layers_of
from .nets import cudnn_search
from .outcome import Outcome, left, line, too_old
from .root import Root, found_roots, is_ddp, root_of
from .safety import compare_speed, spread

MOST_MODELS = 32
"""A program that calls more modules from outside than this calls its layers one by one. After so many in all, it is
asked whether they are `BRIEF`."""
BRIEF = 1.0
"""Seconds that a model takes, on average, from which on it pays to look at further ones: that takes some 25 ms each."""

Say = Callable[[str], None]


class Injection(observer.Follower):
    def __init__(self, advice: Advice, set_flag: SetFlag, say: Say, *, is_tuned: bool = False) -> None:
        """`is_tuned` says that this is a run of a tune."""
        self.advice, self._is_tuned = advice, is_tuned
        self._trains = all(program.trains for program in advice.programs)
        nothing_yet = Reason.NO_STEP() if self._trains else Reason.FEW_CALLS()
        self._outcome = Outcome(self.advice.expected, too_old() or nothing_yet)
        self.note = self._outcome.replace
        self._set_flag, self._say = set_flag, cache(say)  # each line once
        self._finder = ModelFinder(advice.device)
        self._inference_finder = ModelFinder(advice.device, gradients=False)
        self._iterations = Iterations(self._inferred, trains=False)
        self._inference: list[Installer] = []
        """The installers of settings that are on in a program that may be inference-only."""
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._awaited: weakref.ref[Any] | None = None
        """The optimizer whose next step ends what is looked at: the last one that stepped in the first iteration."""
        self._roots: list[Root] = []
        """The models in which something may be on."""
        self._is_first = False
        """Whether no optimizer has stepped twice since the first one did."""
        self._tuned: TunedProgram | None = None
        self._done: weakref.WeakSet[Any] = weakref.WeakSet()
        self._untrained: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models that mixed precision was not put into as long as no optimizer had trained them."""
        self._converted: weakref.WeakSet[Any] = weakref.WeakSet()
        self._has_compared = False
        """Whether the models have been compared with those of other programs that were tuned."""
        self._first_step, self._turns = 0.0, 0

    @property
    def rows(self) -> dict[str, Applied]:
        return self._outcome.rows

    def start(self) -> None:
        if too_old():
            return
        observer.follow(self, "optimizer_stepped", "capture_begun")
        if not self._trains:
            observer.follow(self._iterations, "model_called")
        if "channels_last" in self.advice.expected:
            observer.follow(self, "module_registered")

    def optimizer_stepped(self, optimizer: Any) -> None:
        if self._awaited is None and optimizer in self._optimizers:
            return
        try:
            self._follow(optimizer)
        except BaseException as error:
            self._give_up(error)

    def _follow(self, optimizer: Any) -> None:
        self._stop_inference()
        if self._inference:
            while self._inference:
                self._inference.pop().switch({})
            self._done.clear()
            self._outcome.begin_again()
        if optimizer not in self._optimizers:
            if self._are_brief():
                self._stop_looking()
                observer.leave(self, "optimizer_stepped", "module_registered")
                self._tell(f"nothing is put into further models: {self._turns} came in {BRIEF * self._turns:.0f} s")
                return
            self._optimizers.add(optimizer)
            if self._awaited is None or self._awaited() is None:
                self._finder.start()
                self._is_first = True
            if self._is_first:
                self._awaited = weakref.ref(optimizer)
            return
        self._is_first = False
        if self._awaited is not None and self._awaited() in (optimizer, None) and self._finder.has_looked():
            self._awaited = None
            self._turn_on(self._finder)

    def _are_brief(self) -> bool:
        """Whether one model after the other has come in so short a time that no more are looked at."""
        self._first_step = self._first_step or time.monotonic()
        return self._turns >= MOST_MODELS and time.monotonic() - self._first_step < BRIEF * self._turns

    def _stop_looking(self) -> None:
        self._awaited = None
        self._finder.stop()
        self._stop_inference()
        cudnn_search.leave()

    def capture_begun(self) -> None:
        """From now on nothing is turned on, and no weight moves: a graph has its weights where they are now."""
        self._stop_looking()
        observer.leave(self)
        self._outcome.nothing(Reason.CAPTURES())
        for root in self._roots:
            root.leave_out_of_graphs("channels_last")

    def _inferred(self) -> None:
        """An iteration of a program that seems to be inference-only has ended."""
        try:
            if not self._inference_finder.is_active:
                self._inference_finder.start()
            elif self._inference_finder.has_looked():
                self._stop_inference()
                self._turn_on(self._inference_finder)
        except BaseException as error:
            self._give_up(error)

    def _stop_inference(self) -> None:
        observer.leave(self._iterations)
        self._inference_finder.stop()

    def _give_up(self, error: BaseException) -> None:
        self._stop_looking()
        if is_for_the_program(error):
            raise error
        self._say(f"nothing was put into the program: {type(error).__name__}: {error}")

    def module_registered(self, outer: Any, name: str, module: Any) -> None:
        """Before DistributedDataParallel has looked at the model that it is to wrap."""
        if not is_ddp(outer):
            return
        try:
            self._convert(outer, module)
        except Exception as error:
            if is_for_the_program(error):
                raise
            self._say(f"channels_last was not put in: {type(error).__name__}: {error}")

    def _convert(self, wrap: Any, model: Any) -> None:
        from ..knobs import channels_last

        root = root_of(self._finder, model, Seen(model=weakref.ref(model), shapes=[]), self._optimizers)
        root.converted, root.failed = model in self._converted, partial(self._failed, root.name)
        tuned = self.advice.program([key(model).identity])
        values = tuned.settings if tuned else self.advice.by_family(family(model))
        if not values.get("channels_last"):
            return
        installer, setting = Installer([root], guarded=True), {"channels_last": True}
        rows = installer.obstacles(setting)
        if not rows:
            try:
                channels_last.convert(model)
                # The wrap's own call is guarded from its first time on.
                root.model, root.converted = wrap, True
                rows = installer.switch(setting)
            except BaseException:
                channels_last.turn_off(root)
                raise
            self._converted.update((wrap, model))  # a program may call either
        for row in rows.values():
            if row.status == "failed":
                self._say(f"channels_last was not put in: {row.why}")

    def _turn_on(self, finder: ModelFinder) -> None:
        cudnn_search.leave()
        roots = []
        for root in found_roots(finder, self._optimizers):
            root.converted, root.say = root.model in self._converted, self._say
            root.failed = partial(self._failed, root.name)
            if root.model in self._done:
                names = ["fused_optimizer"]  # it has an optimizer more than before
                if root.is_trained and root.model in self._untrained:
                    self._untrained.remove(root.model)
                    names += ["amp_dtype", "compile"]  # compiled anew, in the other precision
                self._turn_on_in(root, names)
            else:
                roots.append(root)
        if roots and len(roots) <= MOST_MODELS:
            self._turn_on_in_all(roots)
        elif not self._done:
            why = Reason.MANY_MODELS(len(roots)) if roots else Reason.NO_MODEL()
            self._outcome.nothing(why)
            if self.advice.for_any:
                self._tell(f"nothing was put into the program: {why}")

    def _turn_on_in_all(self, roots: list[Root]) -> None:
        self._turns += 1
        trains = all(root.gradients for root in roots)
        tuned = self.advice.program([key(root.model).identity for root in roots], trains=trains)
        if tuned is None:
            self._compare(roots, trains)
            if not (trains and self.advice.for_any):
                self._outcome.nothing(Reason.OTHER_MODELS())
                return
        self._tuned = tuned = tuned and self._without_stale(tuned)
        self._done.update(root.model for root in roots)
        self._roots += roots
        settings, in_models = tuned.settings if tuned else {}, knobs.in_models()
        flags = {name: value for name, value in settings.items() if name not in in_models}
        rows = self._switch(Installer(roots, self._set_flag, guarded=True), flags, trains)
        for name, value in flags.items():
            as_tuned = rows[name].status == "applied" and value == knobs.load(name).DEFAULT
            self._outcome.replace(rows[name].and_because("as it was tuned") if as_tuned else rows[name])
        own = Outcome((), "")
        for root in roots:
            for row in self._turn_on_in(root, in_models):
                own.add(row, root.model, root.name)
                if row.setting == "amp_dtype" and not root.is_trained:
                    self._untrained.add(root.model)
        compare_speed(() if self._is_tuned else roots)
        self._outcome.settle()
        if tuned and tuned.loading and WORKERS not in self.rows:
            self._outcome.replace(left(WORKERS, Reason.NO_LOADER()))
        rows = {
            name: own.rows.get(name, row)
            for name, row in self.rows.items()
            if name in own.rows or name not in in_models or row.status != "applied"
        }
        self._tell(line(rows, roots, tuned))

    def _without_stale(self, tuned: TunedProgram) -> TunedProgram:
        import torch

        stale = tuned.stale(str(torch.__version__))
        for name in stale:
            self.note(left(name, f"measured with torch {tuned.torch}, but this is torch {torch.__version__}"))
        return replace(tuned, settings={name: value for name, value in tuned.settings.items() if name not in stale})

    def _turn_on_in(self, root: Root, names: Iterable[str]) -> list[Applied]:
        if self._tuned and key(root.model).identity not in self._tuned.models:
            return []
        given = self._tuned.settings if self._tuned else self.advice.by_family(root.family)
        values = {name: given[name] for name in names if not knobs.is_default(knobs.load(name), given.get(name))}
        installer = Installer([root], guarded=True)
        rows = installer.obstacles(values)
        rows |= self._switch(installer, {name: values[name] for name in values if name not in rows}, root.gradients)
        if any(knobs.load(name).IN_CALLS for name in installer.current):
            spread(root, is_tuned=self._is_tuned)
        for name in values:
            if rows[name].status == "failed":
                self._say(f"{name} was not put into {root.name}: {rows[name].why}")
            self._outcome.add(rows[name], root.model, root.name)
        return [rows[name] for name in values]

    def _switch(self, installer: Installer, values: Values, trains: bool) -> dict[str, Applied]:
        rows = installer.switch(values)
        if installer.current and not trains:
            self._inference.append(installer)
        return rows

    def _failed(self, model: str, settings: str | Sequence[str], why: Why | str) -> None:
        names = [settings] if isinstance(settings, str) else settings
        for name in names:
            self._outcome.replace(failed(name, why))
        where = f" in {model}" if len(self._roots) > 1 else ""
        self._say(f"{', '.join(names)} turned off{where}: {why}")

    def _compare(self, roots: list[Root], trains: bool) -> None:
        """Say once which tuned program is for models that are almost these."""
        if self._has_compared or self.advice.quiet or not speaks():
            return
        self._has_compared = True
        models = [likeness.Model(identity=key(one.model).identity, layers=layers_of(one.model)) for one in roots]
        if said := likeness.line(self.advice.profile, self.advice.programs, models, trains=trains, entry=entry()):
            self._say(said)

    def _tell(self, said: str) -> None:
        if not self.advice.quiet and speaks():
            self._say(said)
