"""The measuring run: the search is driven through blocks of the program's own steps; what fails costs a new start."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from gputune.facts import busy
from gputune.host import Host
from gputune.knobs.dataloader_workers import WORKERS
from gputune.live.orders import CompareOutputs, DescribeLoader, FindObstacles, Found, TimeBlock, TraceSteps
from gputune.profile import Guard
from gputune.search.budget import Budget
from gputune.search.choice import Block, Tried, agreed, gaining
from gputune.search.combination import DEFAULT, Combination, traits
from gputune.search.search import LOADING, Search, needed_steps
from gputune.search.workers import fewest, sampled
from gputune.search.workers import search as search_workers
from gputune.trials import agreement
from gputune.trials.calm import CalmWatch
from gputune.trials.candidates import WAITS, most_workers
from gputune.trials.command import RunningCommand
from gputune.trials.failure import Attempts, RunFailed
from gputune.trials.progress import CALLS, MEASURING, WAITING, TuneProgress
from gputune.trials.search_result import SearchResult, Wanted
from gputune.trials.start import Start, is_without_room

TRACE = 4
"""The ratio of a block's steps to those of a trace."""
BLOCK_SECONDS, COMPILE_SECONDS = 60.0, 600.0
"""How long a process may be silent: so long or ten of its usual blocks, and longer while it compiles."""
SEARCH_SHARE = 0.5
"""The share of the time left for the tune that the search may take: the guard and the confirmation have the rest."""
LENGTH_SHARE, BEFORE = 0.85, 15
"""The share of its steps, or calls, that the search may take of a program which is known to end, since it does not stop
at the very last one; and how many of them come before the search."""
MOST_STARTS = 8
LOADING_SECONDS = 30.0
"""How long numbers of workers are tried, apart from the search."""
MOST_WAITED = 0.98
"""The largest share of a step that may count as waiting; the rest is the step's own time, of which a lower bound is
needed to plan with."""


def measure(start: Start, wanted: Wanted, *, host: Host, told: TuneProgress) -> SearchResult:
    """Raises RunFailed where the program gives no result with torch's defaults."""
    attempts = Attempts()
    for _ in range(MOST_STARTS):
        left = {name: value for name, value in wanted.candidates.items() if name not in attempts.without}
        with RunningCommand(start, "measure") as command:
            session = _Session(command, replace(wanted, candidates=left), attempts, told, start)
            try:
                return session.run(host)
            except RunFailed as failure:
                if failure.how == "over":
                    command.finish()
                start = session.next_start(failure)
    raise RunFailed(how="ended", detail=f"{MOST_STARTS} starts in turn failed")


class _Session:
    def __init__(
        self, command: RunningCommand, wanted: Wanted, attempts: Attempts, told: TuneProgress, start: Start
    ) -> None:
        self._command, self._attempts, self._told, self._start = command, attempts, told, start
        self._candidates, self._facts = dict(wanted.candidates), wanted.facts
        self._compared_calls = wanted.compared_calls
        self.current = DEFAULT
        self.tracing = False
        self._device_seconds: dict[Combination, float | None] = {}
        self._trains = False
        most = wanted.steps
        if attempts.length is not None:
            room = round(LENGTH_SHARE * attempts.length) - self._apart
            most = room if most is None else min(most, room)
        self.budget = Budget(clock=time.monotonic, most=most)
        self._workers: int | None = None
        self._dataset: str | None = None

    @property
    def _apart(self) -> int:
        """The steps that are not the search's: those before it, and the calls that are compared behind it."""
        return BEFORE + (0 if self._trains else 2 * self._compared_calls)

    @property
    def _needed(self) -> int:
        """How many steps a program must have at the least, for the settings that can be tried in it."""
        return math.ceil((needed_steps(self._candidates) + self._apart) / LENGTH_SHARE / 10) * 10

    def next_start(self, failure: RunFailed) -> Start:
        """What to start after a failure of this one, from which is learned. Raises it where no start would help."""
        if failure.how in ("raised", "ended") and is_without_room(self._start.folder, str(failure)):
            failure.how = "no room"
        match failure.how:
            case "late" | "stopped" | "no room":
                raise failure
            case "over":
                start = self._start_after_end(failure)
            case "ended" | "silent" if self.tracing:
                self._attempts.traces, start = False, self._start
                self._told.searching(f"{failure} while it was traced; starting again without traces")
            case "trains" | "answers":
                start = replace(self._start, trains=failure.how == "trains")
                self._told.searching(f"{failure}; starting again")
            case _:
                if self.current == DEFAULT:
                    failure.when = failure.when or f"after {self.budget.used} measured steps, too few to tell"
                    raise failure
                self._attempts.blame(self.current, failure)
                start = self._start
                self._told.searching(f"{self.current} failed: {failure}; starting again without it")
        return start

    def _start_after_end(self, failure: RunFailed) -> Start:
        """A program that came to its end is started again for a search that is over before; if it is long enough."""
        steps, needed, start = failure.steps, self._needed, self._start
        what = "training steps" if self._trains else "calls without gradients"
        if failure.may_train and start.trains is None and steps < needed:
            self._told.searching("it may train after its evaluation; starting again")
            return replace(start, trains=True)
        if steps < needed or self._attempts.length is not None:
            why = f"and some {needed} are needed" if steps < needed else "in which nothing could be told"
            raise RunFailed(how="short", detail=f"it made {steps} {what}, {why}")
        self._attempts.length = steps
        self._told.searching(f"it ended after {steps} {what}; starting again with a shorter search")
        return replace(start, trains=self._trains)

    def run(self, host: Host) -> SearchResult:
        self._told.searching(WAITING[self._start.trains])
        found = self._command.first(Found)
        self._trains = found.trains
        before = busy.read(host)
        watch = CalmWatch(host, self._facts.cpu, on_gpu=self._command.hello.device == "cuda")
        self.budget.begin()
        self.budget.most_seconds = SEARCH_SHARE * self._left
        loads = self._candidates.pop(WORKERS, None) is not None
        self._part = MEASURING if found.trains else CALLS
        if not found.trains:
            self._told.is_guarded = False
        met = {"training": found.trains, "inference": not found.trains, "images": found.images}
        met["attention"] = "transformer" in found.families
        unmet = {need for need, is_met in met.items() if not is_met}
        unmet_by = {name: unmet.intersection(traits(name).needs) for name in self._candidates}
        self._candidates = {n: v for n, v in self._candidates.items() if not unmet_by[n] & {"training", "inference"}}
        left = dict(self._command.ask(BLOCK_SECONDS, FindObstacles(candidates=self._candidates)).reasons)
        able = {name: value for name, value in self._candidates.items() if name not in left and not unmet_by[name]}
        self._candidates = able
        search = Search(
            measure=self._block, used=lambda: self.budget.share, is_left_out=self._attempts.left_out.__contains__,
            was_calm=watch.was_calm,
        )  # fmt: skip
        self._block(DEFAULT)  # once before, so that time and steps can be planned
        waits = self._block(DEFAULT).waited
        if loads and waits >= WAITS:
            search.start = self._loaded(search, DEFAULT, left)
        fed = search.start.workers and self._block(search.start).waited < WAITS
        winner = search.best(able)
        if fed and self._block(winner).waited >= WAITS:
            winner = self._loaded(search, winner, left)  # whose steps want their batches sooner
            search.start = winner.only(WORKERS)
        self.budget.is_final = True
        arms = search.final(winner)
        self.current = DEFAULT
        seen = [share for arm in arms if arm.combination == DEFAULT for share in arm.waits]
        conditions = busy.conditions(before, busy.read(host))
        seconds = self.budget.seconds
        compared = [] if found.trains or not self._compared_calls else [arm.combination for arm, _ in gaining(arms)]
        agreed = dict(self._agreed(compared))
        self._command.finish()
        return SearchResult(
            hello=self._command.hello, found=found, arms=arms, tried=search.tried, left=left, seconds=seconds,
            failed=self._attempts.failed, conditions=conditions, agreed=agreed, waits=median(seen or [waits]),
            dataset=self._dataset, steps=self.budget.used, length=self._attempts.length,
            disturbed=str(watch) if search.is_disturbed else "", scarcest=self.budget.scarcest,
        )  # fmt: skip

    def _agreed(self, combinations: Sequence[Combination]) -> Iterator[tuple[str, Guard]]:
        """How the outputs with each combination, of which the last is the likeliest, agree with FP32's."""
        over = ""
        for combination in reversed(combinations):
            self.current, explained = combination, combination.limits.outputs
            self._told.searching("comparing outputs", str(combination))
            values = combination.minus(WORKERS).values
            order = CompareOutputs(values=values, calls=self._compared_calls, explained=explained)
            guard = Guard(verdict="unknown", steps=0, reason=over)
            if not over:
                try:
                    guard = agreement.verdict(self._command.ask(COMPILE_SECONDS, order), explained)
                except RunFailed as failure:
                    if failure.how not in ("over", "late"):
                        raise
                    over = str(failure)
                    guard = replace(guard, reason=over)
            yield str(combination), guard

    @property
    def _left(self) -> float:
        return self._start.until - time.monotonic()

    def _loaded(self, search: Search, base: Combination, left: dict[str, str]) -> Combination:
        """The combination with the number of workers that its steps want, which is found apart from the search."""
        budget = self.budget
        begun, used = budget.seconds, budget.used
        loader = self._command.ask(BLOCK_SECONDS, DescribeLoader())
        self._dataset = loader.dataset
        if loader.obstacle:
            left[WORKERS] = loader.obstacle
        most = most_workers(self._facts, loader, self._command.hello.local) if loader.obstacle is None else 0
        if self._attempts.most_workers is not None:
            most = min(most, self._attempts.most_workers)
        if not most:
            return base
        plain = base.minus(WORKERS)
        block = self._block(base)
        enough = block.rate / (1 - min(block.waited, MOST_WAITED))
        tried: dict[int, Tried] = {}

        def rate(count: int) -> float:
            one = plain.plus(WORKERS, count) if count else plain
            arm = tried.setdefault(count, Tried(combination=one, stage=LOADING))
            arm.samples.append(arm.note(self._block(one)))
            return arm.samples[-1]

        late, share = begun + LOADING_SECONDS, (budget.most or math.inf) / 2
        plan = search_workers(most, enough, loader.batches)
        workers = fewest(sampled(plan, rate, lambda: budget.seconds > late or budget.used - used > share), enough)
        search.tried += [tried[count] for count in sorted(tried)]
        budget.apart += budget.seconds - begun
        if budget.most is None:
            budget.used = used
        return plain.plus(WORKERS, workers) if workers else plain

    def _block(self, combination: Combination) -> Block:
        self.current, budget = combination, self.budget
        first = combination not in budget.step_seconds
        compiles = first and combination.is_compiled
        workers = combination.workers
        plain = combination.minus(WORKERS)
        steps = max(budget.steps(combination), workers or 0)  # a whole round of them
        settle = budget.settle(combination)
        if workers != self._workers:
            settle += workers or 0  # what they had ready
        self._workers = workers
        patience = min(COMPILE_SECONDS, self._left / 2) if compiles else self._patience(steps + settle)
        self._told.searching(self._part, str(combination))
        begun = budget.seconds
        order = TimeBlock(values=plain.values, workers=workers, settle=settle, steps=steps)
        answer = self._command.ask(patience, order)
        taken = budget.seconds - begun
        if answer.compiled:
            raise RunFailed(how="recompiled")
        budget.apart += taken if compiles else 0.0
        self._attempts.worked.add(combination)
        budget.used += steps + settle
        budget.step_seconds[combination] = answer.seconds / steps
        if plain not in self._device_seconds:
            self._device_seconds[plain] = self._traced(combination)
        waited = min(1.0, answer.waited / answer.seconds)  # the host's to the device's, which may differ a little
        return Block(
            rate=steps / answer.seconds, peak_bytes=answer.peak_bytes, waited=waited,
            device_seconds=self._device_seconds[plain],
        )  # fmt: skip

    def _traced(self, combination: Combination) -> float | None:
        """How long the GPU works for a step with the combination, which is in force; None where that is not known."""
        if self._command.hello.device != "cuda" or not self._attempts.traces:
            return None
        steps = max(1, self.budget.steps(combination) // TRACE)
        self.tracing = True
        found = self._command.ask(self._patience(steps), TraceSteps(steps=steps)).seconds
        self.tracing = False
        self.budget.used += len(found) * steps
        return agreed(found)

    def _patience(self, steps: int) -> float:
        """The seconds after which a process that makes so many steps, and compiles nothing, is silent for too long."""
        return max(BLOCK_SECONDS, 10 * steps * max(self.budget.step_seconds.values(), default=0.0))
