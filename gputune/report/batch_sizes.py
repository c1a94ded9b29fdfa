"""The answer of a search for a batch size: a row for each batch, and which one to take, in sentences."""

from collections.abc import Mapping
from typing import IO

from gputune.batch_size import BatchSizes
from gputune.batch_size.trials import Trial
from gputune.checks._answers import gib
from gputune.measurement import Measurement
from gputune.report.charts import Cell, Chart, number, rate, ratio
from gputune.report.tables import console_of, draw, plain

_FATES = {"no memory": "did not fit", "failed": "failed", "no end": "hung"}


def print_all(answer: BatchSizes, stream: IO[str]) -> None:
    console = console_of(stream)
    draw(console, chart(answer))
    console.print()
    for sentence in [largest(answer), fastest(answer), *(f"Note: {note}." for note in answer.notes)]:
        console.print(plain(sentence))


def chart(answer: BatchSizes) -> Chart:
    """Rates that were timed in turn have an interval; those of a single trial a ~ instead."""
    timed = {int(row.params["batch"]): rate(row) for row in answer.timed}
    tried = {trial.batch: trial for trial in answer.trials}
    rows: list[tuple[Cell, ...]] = []
    for batch in sorted({*timed, *tried}):
        trial = tried.get(batch)
        rough = f"~{number(trial.rate)}" if trial and trial.rate else ""
        peak = gib(trial.peak_bytes) if trial and trial.peak_bytes is not None else ""
        rows.append((str(batch), timed.get(batch, rough), peak, _fate(trial, answer.margin) if trial else "was timed"))
    return Chart(
        title=f"Training steps by batch on {answer.device}",
        columns=("batch", "samples/s", "peak memory", "what became of it"),
        rows=rows,
        numbers=("batch", "samples/s", "peak memory"),
    )


def _fate(trial: Trial, margin: float) -> str:
    if not trial.ran:
        return f"{_FATES[trial.fate]}: {trial.why}"
    if trial.left is None:
        return "ran; how much memory it left is unknown"
    return "fits" if trial.leaves(margin) else f"ran, and left {_percent(trial.left)} of the memory"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def largest(answer: BatchSizes) -> str:
    if answer.largest is None:
        margin = _percent(answer.margin)
        return f"Largest batch: none leaves {margin} of the memory; the largest that ran is {answer.largest_run}."
    trial = answer.trial(answer.largest)
    room = f"{gib(trial.left_bytes or 0)} ({_percent(trial.left or 0)}) of {gib(trial.total_bytes or 0)}"
    margin = f"the margin is {_percent(answer.margin)}, {gib(int(answer.margin * (trial.total_bytes or 0)))}"
    more = f"; {answer.largest_run} ran too, with less than that left" if answer.largest_run != answer.largest else ""
    found = f"at least {answer.largest}" if answer.at_least else f"{answer.largest}"
    return f"Largest batch: {found}. At its peak it leaves {room}; {margin}{more}."


def fastest(answer: BatchSizes) -> str:
    rows = {int(row.params["batch"]): row for row in answer.timed}
    if answer.fastest is None:
        return f"Best throughput: {_not_certain(answer, rows)}"
    row, smallest = rows[answer.fastest], min(rows)
    parts = [f"Best throughput: {answer.fastest}, at {rate(row)} samples/s"]
    if answer.gain:
        parts.append(f"{ratio(row, rows[smallest])} as fast as {smallest}")
    elif answer.fastest == smallest:
        parts.append("the smallest that was timed")
    if any(batch > answer.fastest for batch in rows):
        parts.append("larger ones gain less than 3 %")
    if any((trial.rate or 0) > row.median for trial in answer.trials if trial.batch not in rows):
        parts.append("rates with a ~ are of a moment's trial and were not compared")
    return "; ".join(parts) + "."


def _not_certain(answer: BatchSizes, rows: Mapping[int, Measurement]) -> str:
    if answer.seeming is None:
        return "unknown; no batch was timed."
    why = (
        f"since {answer.disturbed} meanwhile"
        if answer.disturbed
        else "since no batch was certainly faster than another"
    )
    return (
        f"not certain, {why}. {answer.seeming} seemed best, at {rate(rows[answer.seeming])} samples/s; "
        "search again on an idle machine, or with more --seconds."
    )
