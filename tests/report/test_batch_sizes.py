"""What a search found, as a chart and in sentences, from plain data."""

import io
from dataclasses import replace
from typing import Any

import pytest
from making import row

from gputune.batch_size import BatchSizes
from gputune.batch_size.trials import Trial
from gputune.measurement import Measurement
from gputune.report import batch_sizes

GIB = 1 << 30


def trial(batch: int, left: int) -> Trial:
    memory = {"peak_bytes": (80 - left) * GIB, "left_bytes": left * GIB, "total_bytes": 80 * GIB}
    return Trial(batch=batch, rate=100.0 * batch, **memory)


def timed(batch: int, rate: float) -> Measurement:
    return replace(row("batch_size", "throughput", rate, batch=batch), samples=(rate,) * 12)


def found(**more: Any) -> BatchSizes:
    rows = (timed(8, 1000.0), timed(32, 2000.0), timed(48, 2010.0))
    trials = (
        *(trial(batch, left) for batch, left in ((8, 60), (32, 20), (48, 9), (50, 2))),
        Trial(batch=52, fate="no memory", why="out of memory"),
        Trial(batch=64, fate="failed", why="ValueError: x (train.py:3, in step)"),
    )
    known: dict[str, Any] = {
        "device": "cuda:0", "margin": 0.1, "largest": 48, "largest_run": 50, "fastest": 32,
        "gain": rows[1].against(rows[0]), "trials": trials, "timed": rows,
    }  # fmt: skip
    return BatchSizes(**{**known, **more})


def test_each_batch_has_a_line_with_what_became_of_it() -> None:
    chart = batch_sizes.chart(found())
    assert [row[0] for row in chart.rows] == ["8", "32", "48", "50", "52", "64"]
    assert chart.rows[1][1:] == ("2000 (2000-2000)", "60.0 GiB", "fits")
    assert chart.rows[3][1:] == ("~5000", "78.0 GiB", "ran, and left 2.5 % of the memory")
    assert chart.rows[4][1:] == ("", "", "did not fit: out of memory")
    assert chart.rows[5][3] == "failed: ValueError: x (train.py:3, in step)"


MARGIN = "48. At its peak it leaves 9.0 GiB (11.2 %) of 80.0 GiB; the margin is 10 %, 8.0 GiB"
FASTEST = "32, at 2000 (2000-2000) samples/s; 2.00x (2.00-2.00) as fast as 8"
MORE = "larger ones gain less than 3 %"
ROUGH = "rates with a ~ are of a moment's trial and were not compared"
TRIED = {"trials": (trial(8, 60), trial(32, 20), trial(48, 9), replace(trial(50, 2), rate=1999.0))}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, f"{MARGIN}; 50 ran too, with less than that left."),
        ({"largest_run": 48}, f"{MARGIN}."),
        ({"largest_run": 48, "at_least": True}, f"at least {MARGIN}."),
        ({"largest": None}, "none leaves 10 % of the memory; the largest that ran is 50."),
    ],
)
def test_the_largest_with_its_margin(more: dict[str, Any], sentence: str) -> None:
    assert batch_sizes.largest(found(**more)) == f"Largest batch: {sentence}"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, f"{FASTEST}; {MORE}; {ROUGH}."),
        (TRIED, f"{FASTEST}; {MORE}."),
        (
            {"fastest": 8, "gain": None},
            f"8, at 1000 (1000-1000) samples/s; the smallest that was timed; {MORE}; {ROUGH}.",
        ),
        ({"fastest": None, "gain": None, "timed": ()}, "unknown; no batch was timed."),
        (
            {"fastest": None, "seeming": 32, "disturbed": "others used 1.5 of 2 CPUs"},
            "not certain, since others used 1.5 of 2 CPUs meanwhile. 32 seemed best, at 2000 (2000-2000) samples/s; "
            "search again on an idle machine, or with more --seconds.",
        ),
        (
            {"fastest": None, "seeming": 32},
            "not certain, since no batch was certainly faster than another. 32 seemed best, at 2000 (2000-2000) "
            "samples/s; search again on an idle machine, or with more --seconds.",
        ),
    ],
)
def test_the_fastest_with_its_gain(more: dict[str, Any], sentence: str) -> None:
    assert batch_sizes.fastest(found(**more)) == f"Best throughput: {sentence}"


def test_what_cannot_be_told_is_said() -> None:
    chart = batch_sizes.chart(replace(found(), trials=(Trial(batch=8),)))
    assert chart.rows[0][3] == "ran; how much memory it left is unknown"


def test_all_of_it_on_a_stream_with_its_notes() -> None:
    stream = io.StringIO()
    batch_sizes.print_all(found(notes=("the time ended",)), stream)
    assert stream.getvalue().rstrip().endswith("Note: the time ended.")
