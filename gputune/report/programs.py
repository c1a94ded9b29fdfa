"""A program that was tuned: what was tried, what the guard saw, and the answer in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any

from gputune.host.shared_text import TEXTS, cleaner
from gputune.measurement import Measurement
from gputune.profile import Program
from gputune.report import json
from gputune.report.charts import Cell, Chart, Mark, Picture, number, ratio, ratio_mark
from gputune.report.tables import console_of, draw, plain
from gputune.resources.printable import quoted
from gputune.search.combination import Combination
from gputune.search.search import ENDS
from gputune.trials.candidates import WAITS

if TYPE_CHECKING:
    from gputune.trials.result import TuneResult

WITHIN = 0.03
"""How far whole starts may lie outside of the interval of the steps that took turns, without a word."""
SEEN = 0.01
"""The share of a step that is waited for data from which on it is shown."""
STAGES = ("loading", *ENDS)


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
    for gap in result.program.gaps:
        console.print(plain(f"not tried: {gap.fact} ({gap.reason})"))
    for combination, why in result.refused.items():
        console.print(plain(f"refused by the guard: {combination} ({why})"))


def charts(program: Program) -> Iterator[Chart]:
    timed = [row for row in program.measurements if row.metric == "throughput" and row.median > 0]
    rows = [row for row in timed if row.params.get("stage") in STAGES]
    if rows:
        yield Chart(
            title=f"{program.entry}: its own {_what(program)}s",
            columns=("compared", "", "ms", "to the first", "GPU, ms", "MiB", "waits, %"),
            numbers=("ms", "GPU, ms", "MiB", "waits, %"),
            rows=list(_arms(rows)),
            pictures=tuple(_bars(rows)),
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


def _bars(rows: Sequence[Measurement]) -> Iterator[Picture]:
    stages: dict[str, list[Measurement]] = {}
    for row in rows:
        stages.setdefault(str(row.params["stage"]), []).append(row)
    for stage, arms in stages.items():
        marks = {
            _name(row): (one,) for row in arms if (one := ratio_mark(row, arms[0], f"{number(1000 / row.median)} ms"))
        }
        yield Picture(name=stage, unit="times as fast", rows=marks, base=1.0)


def _arms(rows: Sequence[Measurement]) -> Iterator[tuple[Cell, ...]]:
    """Each stage's arms; one that was dropped after the first rounds has fewer samples."""
    firsts: dict[str, Measurement] = {}
    for row in rows:
        stage = str(row.params["stage"])
        new = stage not in firsts
        first = firsts.setdefault(stage, row)
        memory = number(row.conditions["peak_mib"]) if "peak_mib" in row.conditions else ""
        works = number(row.conditions["device_ms"]) if "device_ms" in row.conditions else ""
        waited = row.conditions.get("waited", 0.0)
        waits = f"{100 * waited:.0f}" if waited >= SEEN else ""
        gained = "" if new else ratio(row, first)
        yield (stage if new else "", _name(row), number(1000 / row.median), gained, works, memory, waits)


def _name(row: Measurement) -> str:
    values: dict[str, Any] = {name: value for name, value in row.params.items() if name != "stage"}
    return str(Combination.of(values)) if values else "defaults"


def untold(result: TuneResult) -> str:
    """What is said where others leave nothing to tell."""
    return f"{result.program.entry}: nothing can be told beside others: {result.disturbed}"


def answer(result: TuneResult, path: Path, command: Sequence[str]) -> str:
    """The last line of a tune of a command, whose result is in the file `path`."""
    program = result.program
    if result.gain is None:
        if result.seeming:
            what, times = result.seeming
            return (
                f"{program.entry}: nothing is certain: {what} seemed {times:.3g} times as fast, in too few steps or "
                "beside too much else to tell; tune again on an idle machine, or with more --steps"
            )
        refused = "; what was faster, the guard refused" if result.refused else ""
        return f"{program.entry}: nothing is to be gained here: torch's defaults are best{refused}"
    found = result.gain
    before = 1000 / next(row.median for row in program.measurements if row.params == {"stage": "final"})
    probably = "probably " if result.disturbed else ""
    words = [
        f"{program.entry}: {before:.4g} -> {before / found.ratio:.4g} ms a {_what(program)}, "
        f"{probably}{found.ratio:.3g} times ({found.low:.3g} to {found.high:.3g}) as fast",
        *([f"{result.disturbed} meanwhile, so tune again once it is calm"] if result.disturbed else []),
        _losses(program),
        *([f"{result.more_memory:.2f} times the memory"] if result.more_memory else []),
        *_confirmed(program, (found.low, found.high)),
        quoted("gputune", "apply", str(path), "--", *command),
    ]
    return "; ".join(words)


def _losses(program: Program) -> str:
    verdict, reason = (program.guard.verdict, program.guard.reason) if program.guard else ("off", "")
    compared = "loss" if program.trains else "outputs"
    return {
        "accepted": reason,
        "unknown": f"its {compared} could not be compared ({reason})",
        "off": f"its {compared} {'was' if program.trains else 'were'} not compared",
        "refused": "",
    }[verdict]


def _what(program: Program) -> str:
    return "step" if program.trains else "call"


def _confirmed(program: Program, interval: tuple[float, float]) -> list[str]:
    confirmation = program.confirmation
    if confirmation is None:
        return []
    plain, tuned = median(confirmation.plain_ms), median(confirmation.tuned_ms)
    whole, (low, high) = plain / tuned, interval
    words = []
    if whole > high * (1 + WITHIN) or whole < low * (1 - WITHIN):
        beyond = whole / high - 1 if whole > high else whole / low - 1
        words.append(f"but {whole:.3g} times in whole starts, {100 * beyond:+.0f} % beyond that")
    if plain > tuned:
        steps = max(0.0, 1000 * confirmation.cost_seconds / (plain - tuned))
        words.append(f"paid back after {steps:.0f} {_what(program)}s ({steps * tuned / 60e3:.1f} min)")
    return words
