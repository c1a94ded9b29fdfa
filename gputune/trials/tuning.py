"""A tune from its first start of the program to its last: measured, guarded, confirmed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from gputune import checks, facts
from gputune.errors import MeasureError
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.host.stderr import say
from gputune.knobs import Numerics
from gputune.knobs.dataloader_workers import WORKERS
from gputune.live.advice import Advice, Loading, TunedProgram
from gputune.measurement import Comparison
from gputune.probing.plan import device_of
from gputune.profile import Confirmation, Guard, Profile
from gputune.progress import Progress
from gputune.resources.unreadable import Cause
from gputune.search.choice import Tried
from gputune.search.combination import Combination
from gputune.trials import agreement
from gputune.trials.calm import CalmWatch
from gputune.trials.candidates import candidates
from gputune.trials.checking import NO_GAIN, GuardRuns, confirm, why_no_gain
from gputune.trials.failure import RunFailed
from gputune.trials.measuring import measure
from gputune.trials.progress import TuneProgress
from gputune.trials.result import TuneResult, ranking, tuned
from gputune.trials.search_result import SearchResult, Wanted
from gputune.trials.start import END_BYTES, NO_ROOM, Start

GUARD_STEPS = 100
MINUTES = 10.0
ABOUT_TO_END = 3
"""How many steps before the end of a program, whose length is known, its guard's runs end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    """A private folder, which takes what the program writes."""
    profile: Profile | None = None
    """Narrows what is tried."""
    only: tuple[str, ...] = ()
    """The settings that may change; empty for all."""
    steps: int | None = None
    """The most steps of the measuring run; None for as many as it should take."""
    level: Numerics = "mixed"
    """How far results may change."""
    guard_steps: int | None = GUARD_STEPS
    """The steps of each run of the guard; None for no guard."""
    allow_writes: bool = False
    """Whether the program writes what it always writes, and trackers record."""
    minutes: float = MINUTES
    """How long the tune may take in all, once a calm machine has been waited for."""
    wait_minutes: float = 0.0
    """How long a calm machine is waited for."""
    above_copies: bool = False
    """As `Start.above_copies`."""


UNGUARDED = Guard(verdict="off", steps=0)
REMEDIES = {
    "nodes": "tune it on one node; the result serves on several",
    "never stepped": "tune a command that trains with an optimizer of torch's, or calls its model without gradients; "
    "if it needs longer to begin, --minutes gives it more",
    "gradients": "if it trains nothing, call its model in torch.no_grad(); if it trains, use an optimizer of torch's",
    "late": "--minutes gives it longer",
    "short": "let it make more for the tune, such as more epochs or more of its data",
    "stopped": "tune it again, and let it run",
    "finished": "let it make more steps; if it resumed a training that was finished, give it a new output folder",
}
FEWER = "; or try fewer settings, such as --only amp_dtype"

READS_STDIN = "it read its standard input, which is empty here: name a file, as in sh -c 'python train.py < answers'"
NOTHING_TO_READ = (b"EOFError: EOF when reading a line",)
NO_ROOM_LEFT = (
    "what it writes while it is tuned lies in {}, or in memory if that is an overlay: "
    "set TMPDIR to a folder of a disk that has room for all of it"
)


def tune(request: TuneRequest, log: IO[bytes], *, host: Host, progress: Callable[[Progress], None]) -> TuneResult:
    """Tune a program. `log` takes its output.

    Raises MeasureError where nothing can be measured, since the program does not run or takes no step.
    """
    told = TuneProgress(tell=progress, is_guarded=bool(request.guard_steps))
    told.reading()
    machine = facts.read(host, variables=checks.variables())
    device = device_of(machine, "auto")
    _look(machine, CalmWatch(host, machine.cpu, on_gpu=device.startswith("cuda")), request.wait_minutes, told)
    until = time.monotonic() + 60 * request.minutes
    free = [size for size in (machine.memory.free_bytes, machine.memory.limit_free_bytes) if size is not None]
    start = Start(
        command=request.command, environ=request.environ, folder=request.folder, log=log, until=until,
        allow_writes=request.allow_writes, above_copies=request.above_copies, free_bytes=min(free, default=None),
    )  # fmt: skip
    try:
        return _Tune(request, start, machine, told, device).run(host)
    except RunFailed as failure:
        remedy = _remedy(failure, request, Path(log.name))
        raise MeasureError(f"{' '.join(request.command)}: {failure}", remedy) from None


def _remedy(failure: RunFailed, request: TuneRequest, log: Path) -> str:
    if _ended_with(log, NOTHING_TO_READ):
        return READS_STDIN
    if failure.how == "no room" or _ended_with(log, [words.encode() for words in NO_ROOM]):
        return f"{NO_ROOM_LEFT.format(request.folder.parent)}; its output is in {log}"
    remedy = REMEDIES.get(failure.how, f"its output is in {log}")
    return remedy + FEWER if failure.how == "short" and not request.only else remedy


def _ended_with(log: Path, words: Sequence[bytes]) -> bool:
    """Whether the end of a program's output holds any of these words."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - END_BYTES))
        end = file.read()
        return any(one in end for one in words)
    return False


def _look(machine: Facts, watch: CalmWatch, wait_minutes: float, told: TuneProgress) -> None:
    """Say so if the machine is busy, and wait for it to be calm."""
    if watch.is_calm(machine.cpu.others):
        return
    more = f"waiting for it to be calm, for at most {wait_minutes:g} min" if wait_minutes else (
        "only what is measured while it is calm is certain; --wait 30 would wait for that first"
    )  # fmt: skip
    say(f"this machine is busy: {watch}; {more}")
    if wait_minutes:
        told.waiting_for_calm()
        watch.wait(60 * wait_minutes)


class _Tune:
    def __init__(self, request: TuneRequest, start: Start, machine: Facts, told: TuneProgress, device: str) -> None:
        self._request, self._start, self._machine, self._told = request, start, machine, told
        self._device = device
        self._kind = self._device.partition(":")[0]
        self._refused: dict[str, Gap] = {}

    def run(self, host: Host) -> TuneResult:
        """Raises RunFailed."""
        asked = self._request
        able = candidates(self._machine, self._kind, level=asked.level, only=asked.only, profile=asked.profile)
        calls = min(asked.guard_steps or 0, agreement.CALLS)
        wanted = Wanted(candidates=able, facts=self._machine, steps=asked.steps, compared_calls=calls)
        measured = measure(self._start, wanted, host=host, told=self._told)
        self._start = replace(self._start, trains=measured.found.trains)
        accepted, guard, whole = self._chosen(measured)
        arms = [arm for arm in measured.arms if str(arm.combination) not in self._refused]
        result = tuned(replace(measured, arms=arms), accepted, self._machine, self._device, guard)
        refused = tuple(self._refused.values())
        return replace(result, program=replace(result.program, refused=refused, confirmation=whole))

    def _chosen(self, measured: SearchResult) -> tuple[tuple[Tried, Comparison] | None, Guard, Confirmation | None]:
        """The first combination that the guard accepts and that gains in whole starts, as far as there is time for
        these; once another was slower in them, only one that was seen to gain.
        """
        most = measured.steps if measured.length is None else min(measured.steps, measured.length)
        guard, is_doubtful = UNGUARDED, False
        for found, guard in self._guarded(measured, ranking(measured)):
            combination, why = found[0].combination, guard.reason
            cause: Cause | None = None
            if guard.verdict != "refused":
                whole = confirm(self._start, self._advice(measured, combination), self._told, most)
                if whole is None and is_doubtful:
                    break
                why, cause = why_no_gain(whole, combination, measured.length) if whole else "", NO_GAIN
                if not why:
                    return found, guard, whole
                is_doubtful |= bool(whole and why_no_gain(whole, combination, None))
            self._refused[str(combination)] = Gap(fact=str(combination), reason=why, cause=cause)
        return None, guard, None

    def _guarded(
        self, measured: SearchResult, ranked: list[tuple[Tried, Comparison]]
    ) -> Iterator[tuple[tuple[Tried, Comparison], Guard]]:
        """Each combination with what the guard says of it."""
        steps = self._request.guard_steps
        if steps is None or not ranked:
            yield from ((found, UNGUARDED) for found in ranked)
            return
        if measured.length is not None:
            steps = min(steps, measured.length - ABOUT_TO_END)
        loading = ranked[0][0].combination.only(WORKERS)
        plain = self._advice(measured, loading) if loading.workers else None
        runs = GuardRuns(start=self._start, steps=steps, told=self._told, plain=plain)
        for found in ranked:
            combination = found[0].combination
            if measured.found.trains:
                yield found, runs.of(combination, self._advice(measured, combination))
            else:  # whose outputs the measuring run has compared
                yield found, measured.agreed[str(combination)]

    def _advice(self, measured: SearchResult, combination: Combination) -> Advice:
        workers = combination.workers
        of_this_machine = {"cpu_budget": self._machine.cpu.budget, "own_dataset": True}
        program = TunedProgram(
            entry=measured.hello.entry,
            models=tuple(one.identity for one in measured.found.models),
            settings=combination.minus(WORKERS).values,
            shapes=measured.found.shapes,
            world_size=measured.hello.world,
            trains=measured.found.trains,
            dataset=measured.dataset,
            loading=Loading(choices={WORKERS: workers}, measured=of_this_machine) if workers else None,
        )
        return Advice(device=self._kind, programs=(program,))
