"""`gputune pad`: the size to pad a dimension of a model to, and the speed-up from that."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputune.cli import _paths
from gputune.errors import MeasureError, UsageError

if TYPE_CHECKING:
    from gputune.measurement import Comparison


def pad(
    n: Annotated[
        int,
        typer.Argument(
            metavar="N", min=1, max=1 << 24, help="The size of a dimension, such as a layer's features or a vocabulary."
        ),
    ],
    dtype: Annotated[
        str | None,
        typer.Option(metavar="DTYPE", help="bfloat16, float16, tf32 or float32.", show_default="what suits the device"),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(parser=_paths.path, metavar="PROFILE", help="Answer from this profile instead of measuring."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Print the size to pad a dimension to, and how much faster that is."""
    from gputune.host.stderr import one_line, show
    from gputune.report import json

    full = _full_name(dtype) if dtype else None
    padded, gain, measured = _look_up(profile, n, full or "bfloat16") if profile else _measure(n, full)
    if as_json:
        ratio, interval = (gain.ratio, gain.interval) if gain else (None, None)
        show(json.line({"n": n, "padded": padded, "gain": ratio, "interval": interval, "measured": measured}))
    else:
        show(one_line(f"{_sentence(n, padded, gain)} ({measured})"))


def _full_name(dtype: str) -> str:
    """The name of a dtype without abbreviation. Raises UsageError for one that is not measured."""
    from gputune.benches.matmul_shapes import DTYPES
    from gputune.cli import _choices

    abbreviations = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
    full = abbreviations.get(dtype, dtype)
    _choices.require(full, DTYPES, "dtype", "--dtype")
    return full


def _look_up(path: Path, n: int, dtype: str) -> tuple[int, Comparison | None, str]:
    """The next multiple that the profile recommends, its gain at measured sizes, and where that was measured."""
    from gputune.profile import load
    from gputune.settings import dimension_multiple

    stored = load(path)
    multiples: Any = stored.settings["dimension_multiple"].value if "dimension_multiple" in stored.settings else {}
    if dtype not in multiples:
        raise UsageError(
            f"{path}: holds no measured alignment of {dtype}",
            "measure it: gputune probe --budget thorough, or omit --profile",
        )
    padded = -(-n // multiples[dtype]) * multiples[dtype]
    gain = dimension_multiple.padding_gain(stored.measurements, dtype, n, padded) if padded != n else None
    where = f"{dtype}, by the sizes measured on {stored.fingerprint.device or 'an unknown device'}"
    return padded if gain is None or gain.low > 1 else n, gain, where


def _measure(n: int, dtype: str | None) -> tuple[int, Comparison | None, str]:
    """The size, its gain and where it was measured: on the first GPU or, without any, on the CPU."""
    from gputune import probing
    from gputune.bench_process import MatmulShape
    from gputune.report.progress import shown
    from gputune.report.terminal import print_findings
    from gputune.settings import dimension_multiple

    request = probing.Request(budget="quick", only=["matmul_shapes"], shapes=[MatmulShape(n=n, dtype=dtype)])
    with shown() as progress:
        profile = probing.probe(request, progress=progress)
    alone = [finding for finding in profile.findings if finding.check == "measured_alone"]
    print_findings(alone, sys.stderr, least="WARNING")
    best = dimension_multiple.least_padding(profile.measurements)
    if best is None:
        raise MeasureError(f"{n}: too few samples for a comparison", "try again on an idle machine")
    where = f"{best[0].params['shape']} on {profile.fingerprint.device or 'an unknown device'}"
    return int(best[0].params["n"]), best[1], where


def _sentence(n: int, padded: int, gain: Comparison | None) -> str:
    if padded == n:
        return f"keep {n}: no {'certain ' if gain else ''}gain from padding"
    times = f"{gain.ratio:.3g} times as fast" if gain else "faster"
    interval = f" ({gain.interval[0]:.3g} to {gain.interval[1]:.3g})" if gain and gain.interval else ""
    return f"pad {n} to {padded}: {times}{interval}"
