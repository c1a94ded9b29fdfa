"""A program that was tuned: what was tried, what the guard saw, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from math import ceil
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any

from gputune.host.shared_text import TEXTS, cleaner
from gputune.knobs.dataloader_workers import WORKERS
from gputune.measurement import LEAST_GAIN, Measurement
from gputune.profile import Program
from gputune.report import json
from gputune.report.answer_parts import PLACEHOLDER
from gputune.report.charts import STAR, Cell, Chart, Mark, Picture, number, ratio, ratio_mark
from gputune.report.progress import elapsed_words
from gputune.report.tables import console_of, draw, plain
from gputune.resources.printable import quoted
from gputune.resources.unreadable import Cause
from gputune.search.choice import BEHIND
from gputune.search.combination import DEFAULT, Combination
from gputune.search.search import ENDS, LOADING
from gputune.trials.candidates import WAITS
from gputune.trials.checking import NO_GAIN

if TYPE_CHECKING:
    from gputune.trials.result import TuneResult

WITHIN = 0.03
"""How far whole starts of the script may lie outside of the interval of the steps that took turns, unmentioned."""
SEEN = 0.01
"""The share of a step that is waited for data from which on it is shown."""
STAGES = (LOADING, *ENDS)
Stars = Mapping[str, Combination]
"""By stage, the combination that was chosen."""
TOO_LITTLE = "nothing can be told, since too few steps were timed"
IN_STARTS = "nothing was found that certainly or probably gains in whole starts: torch's defaults stay"
SCARCE = {
    "length": (", and then it was at its end", "let it make more steps, such as more epochs or more of its data"),
    "steps": (" within --steps", "tune again with more --steps"),
    "minutes": (" within --minutes", "tune again with more --minutes"),
    "seconds": (", which take long", "try fewer settings at a time, such as --only amp_dtype"),
}
"""By what was used up first, how that is said, and what helps."""
FAILED: Cause = "exited"
"""The cause of a program's gap where a setting was tried and ended it."""


def json_text(program: Program) -> str:
    """A program, without what tells who and where in its reasons."""
    return json.text(cleaner().all(asdict(program), TEXTS))


def print_program(result: TuneResult, stream: IO[str]) -> None:
    console = console_of(stream)
    for chart in charts(result.program):
        draw(console, chart)
    if result.waits >= WAITS:
        said = f"with torch's defaults its steps wait for data for {100 * result.waits:.0f} % of their time"
        console.print(plain(said))
    for line in notes(result.program):
        console.print(plain(line))


def notes(program: Program) -> Iterator[str]:
    """A line for each setting or combination of a program that is out for another reason than its speed."""
    for gap in program.gaps:
        yield f"{'failed' if gap.cause == FAILED else 'not tried'}: {gap.fact} ({gap.reason})"
    for gap in program.refused:
        yield f"{'not used' if gap.cause == NO_GAIN else 'refused by the guard'}: {gap.fact} ({gap.reason})"


def is_provisional(program: Program) -> bool:
    """Whether others used the machine meanwhile, so that what was measured holds only probably."""
    return any(choice.provisional for choice in program.settings.values())


def seeming(program: Program) -> tuple[Combination, float] | None:
    """The fastest combination and how many times as fast it seemed, where nothing certainly gains over torch's
    defaults, nor certainly does not.
    """
    rows = {_combination(row): row for row in timed(program) if row.params["stage"] == "final"}
    default, refused = rows.get(DEFAULT), {gap.fact for gap in program.refused}
    if program.settings or default is None:
        return None
    best = max((one for one in rows if str(one) not in refused), key=lambda one: rows[one].median)
    found, ratio = rows[best].against(default), rows[best].median / default.median
    return None if (found and found.verdict != "undecided") or ratio <= LEAST_GAIN else (best, ratio)


def why_nothing(program: Program) -> str:
    """What a tune that chose nothing says of a program, in its last line and wherever its profile is shown."""
    if is_too_little(program):
        return TOO_LITTLE
    if open_ := seeming(program):
        what, times = open_
        return (
            f"nothing is certain: {what} seemed {times:.3g} times as fast, in too few steps or beside too much else to "
            "tell; tune again on an idle machine, or with more --steps"
        )
    if any(gap.cause == NO_GAIN for gap in program.refused):
        return IN_STARTS
    refused = "; what was faster, the guard refused" if program.refused else ""
    names = [gap.fact for gap in program.gaps if gap.cause == FAILED]
    failed = f"; {' and '.join(names)} failed" if names else ""
    return f"nothing that was tried gains here: torch's defaults stay{refused}{failed}"


def is_too_little(program: Program) -> bool:
    """Whether too few rounds left open if what was about as fast as torch's defaults is faster."""
    rows = timed(program)
    last = [row for row in rows if row.params["stage"] == "final"] or rows
    pairs = [(row, block[0]) for _, block in _blocks(last) for row in block[1:]]
    is_open = any(row.against(first) is None and row.median >= BEHIND * first.median for row, first in pairs)
    return is_open and seeming(program) is None


def charts(program: Program) -> Iterator[Chart]:
    rows, best = timed(program), Combination.of({name: one.value for name, one in program.settings.items()})
    stars = {"final": best} if program.settings else {}
    stars |= {"loading": best.only(WORKERS)} if best.workers else {}
    if rows:
        yield Chart(
            title=f"{program.entry}: its own {_what(program)}s",
            star=("probably best" if is_provisional(program) else "chosen") if stars else "",
            columns=("compared", "", "ms", "to the first", "GPU, ms", "MiB", "waits, %"),
            numbers=("ms", "GPU, ms", "MiB", "waits, %"),
            rows=list(_arms(rows, stars)),
            pictures=tuple(_bars(rows, stars)),
        )
    guard = program.guard
    if guard and guard.fp32:
        parts = list(enumerate(zip(guard.fp32, guard.tuned, strict=False), start=1))
        marks = {
            f"part {place}": (
                Mark(name="FP32", value=(low + high) / 2, interval=(low, high)), Mark(name="tuned", value=tuned),
            )
            for place, ((low, high), tuned) in parts
        }  # fmt: skip
        yield Chart(
            title=f"Mean loss of {guard.steps} steps, in {len(guard.fp32)} parts: FP32 with three seeds, and tuned",
            columns=("part", "FP32 from", "to", "tuned"),
            numbers=("FP32 from", "to", "tuned"),
            rows=[(str(place), number(low), number(high), number(tuned)) for place, ((low, high), tuned) in parts],
            pictures=(Picture(unit="mean loss", rows=marks),),
        )


def timed(program: Program) -> list[Measurement]:
    """The rows that compare steps of a program's."""
    timed = [row for row in program.measurements if row.metric == "throughput" and row.median > 0]
    return [row for row in timed if row.params.get("stage") in STAGES]


def _blocks(rows: Sequence[Measurement]) -> Iterator[tuple[str, list[Measurement]]]:
    """The rows of each comparison, with the name of its stage; a stage may come again."""
    for stage, block in groupby(rows, lambda row: str(row.params["stage"])):
        yield stage, list(block)


def _bars(rows: Sequence[Measurement], stars: Stars) -> Iterator[Picture]:
    for stage, arms in _blocks(rows):
        marks = {}
        for row in arms:
            note = f"{number(1000 / row.median)} ms"
            one = ratio_mark(row, arms[0], note) or Mark(value=row.median / arms[0].median, note=note)
            marks[_name(row)] = (replace(one, chosen=_is_chosen(row, stars)),)
        yield Picture(name=stage, unit="times as fast", rows=marks, base=1.0)


def _arms(rows: Sequence[Measurement], stars: Stars) -> Iterator[tuple[Cell, ...]]:
    """Each stage's arms. The ratio of one that has too few samples to be compared in pairs is rough."""
    for stage, first, row in ((stage, block[0], row) for stage, block in _blocks(rows) for row in block):
        new = row is first
        memory = number(row.conditions["peak_mib"]) if "peak_mib" in row.conditions else ""
        works = number(row.conditions["device_ms"]) if "device_ms" in row.conditions else ""
        waited = row.conditions.get("waited", 0.0)
        waits = f"{100 * waited:.0f}" if waited >= SEEN else ""
        gained = "" if new else ratio(row, first) or f"~{number(row.median / first.median)}x"
        first_cell = stage if new else STAR if _is_chosen(row, stars) else ""
        yield (first_cell, _name(row), number(1000 / row.median), gained, works, memory, waits)


def _is_chosen(row: Measurement, stars: Stars) -> bool:
    return stars.get(str(row.params["stage"])) == _combination(row)


def _combination(row: Measurement) -> Combination:
    values: dict[str, Any] = {name: value for name, value in row.params.items() if name != "stage"}
    return Combination.of(values)


def _name(row: Measurement) -> str:
    combination = _combination(row)
    return "defaults" if combination == DEFAULT else str(combination)


def untold(result: TuneResult, command: Sequence[str]) -> tuple[str, str]:
    """What is said where nothing can be told, and what to do about it."""
    entry, (why, remedy) = result.program.entry, SCARCE[result.scarce]
    if not result.disturbed:
        return f"{entry}: {TOO_LITTLE}{why}", remedy
    in_starts = why_nothing(result.program) == IN_STARTS
    what = IN_STARTS if in_starts else "nothing can be told beside others"
    wait = f"wait for a calm machine: {quoted('gputune', 'tune', '--wait', '30', '--', *command)}"
    # The search's own time is what others make scarce.
    more = "" if in_starts or result.scarce == "seconds" else f"{remedy}, or "
    return f"{entry}: {what}: {result.disturbed}", f"{more}{wait}"


def answer(result: TuneResult, path: Path | None, command: Sequence[str]) -> str:
    """The last lines of a tune of a command; the very last one can be typed. The result is in the file `path`, or was
    printed if that is None.
    """
    program = result.program
    if result.gain is None:
        return f"{program.entry}: {why_nothing(program)}"
    found, probably = result.gain, "probably " if result.disturbed else ""
    before = 1000 / next(row.median for row in program.measurements if row.params == {"stage": "final"})
    gained = (
        f"{before:.4g} -> {before / found.ratio:.4g} ms a {_what(program)}, "
        f"{probably}{found.ratio:.3g} times ({found.low:.3g} to {found.high:.3g}) as fast"
    )
    words = [
        _otherwise_in_starts(program, (found.low, found.high), gained if probably else "") or gained,
        *([f"{result.disturbed} meanwhile, so tune again once it is calm"] if result.disturbed else []),
        compared(program),
        *([f"{result.more_memory:.2f} times the memory"] if result.more_memory else []),
    ]
    printed = [] if path else [f"the profile was printed; once it is in a file, {PLACEHOLDER}, type:"]
    applied = quoted("gputune", "apply", str(path or PLACEHOLDER), "--", *command)
    return "\n".join([f"{program.entry}: {'; '.join(words)}", *_cost(program, result.length), *printed, applied])


def compared(program: Program) -> str:
    """How its loss or outputs compare with FP32's, or why that is not known."""
    verdict, reason = (program.guard.verdict, program.guard.reason) if program.guard else ("off", "")
    what, was = ("loss", "was") if program.trains else ("outputs", "were")
    return {
        "accepted": reason,
        "unknown": f"its {what} could not be compared ({reason})",
        "off": f"its {what} {was} not compared",
    }.get(verdict, "")


def _what(program: Program) -> str:
    return "step" if program.trains else "call"


def _otherwise_in_starts(program: Program, interval: tuple[float, float], probable: str) -> str:
    """How fast whole starts were, if that lies outside of what the steps say that were timed in turn; else empty.
    Behind what is `probable` by these steps, since others disturb one start more than another.
    """
    if program.confirmation is None:
        return ""
    plain, tuned = median(program.confirmation.plain_ms), median(program.confirmation.tuned_ms)
    low, high = interval
    if low * (1 - WITHIN) <= plain / tuned <= high * (1 + WITHIN):
        return ""
    starts = f"{plain:.4g} -> {tuned:.4g} ms a {_what(program)} in whole starts"
    if probable:
        return f"{probable} ({starts})"
    fast = f"{plain / tuned:.3g} times as fast"
    return f"{starts}, {fast} (in one process, settings in turn: {low:.3g} to {high:.3g} times)"


def _cost(program: Program, length: int | None) -> Iterator[str]:
    """How much longer a start takes, if that is more than a step saves, and when it is ahead all the same, if it is
    before the program's end after `length` steps.
    """
    confirmation = program.confirmation
    if confirmation is None:
        yield "how much longer its start takes is not known: --minutes was over before; more of them tell"
        return
    plain, tuned = median(confirmation.plain_ms), median(confirmation.tuned_ms)
    saved, cost = plain - tuned, 1000 * confirmation.cost_seconds
    if cost > saved > 0:
        steps, what = ceil(cost / saved), _what(program)
        ahead = f"it is ahead after {steps} {what}s ({_lasting(steps * plain / 1000)})"
        slower = f"; a run of {length} {what}s, as here, takes longer with it" if length and length < steps else ""
        yield f"its start takes {_lasting(cost / 1000)} longer; {ahead}{slower}"


def _lasting(seconds: float) -> str:
    return elapsed_words(seconds) if seconds >= 60 else f"{number(seconds)} s"
