"""`gputune pad`: the size to pad a dimension of a model to, and the speed-up from that."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gputune.measurement import Comparison


def pad(
    n: Annotated[
        int,
        typer.Argument(
            metavar="N",
            help="The size of a dimension, such as the features of a layer or a vocabulary.",
            min=1,
            max=1 << 24,
        ),
    ],
    dtype: Annotated[
        str | None,
        typer.Option(
            help="bfloat16, float16, tf32 or float32 (or bf16, fp16, fp32).", show_default="what suits the device"
        ),
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="Answer from this profile instead of measuring.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Print the size to pad a dimension to, and how much faster that is."""
    import json

    full = _full_name(dtype) if dtype else None
    answer = _look_up(profile, n, full or "bfloat16") if profile else _measure(n, full)
    if as_json:
        print(json.dumps(asdict(answer)))
    else:
        print(answer.sentence)


def _full_name(dtype: str) -> str:
    """The name of a dtype without abbreviation. Raises UsageError for one that is not measured."""
    from gputune.benches.matmul_shapes import DTYPES
    from gputune.cli import _choices

    abbreviations = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
    full = abbreviations.get(dtype, dtype)
    _choices.require(full, DTYPES, "dtype", "--dtype")
    return full


def _look_up(path: Path, n: int, dtype: str) -> _Answer:
    """The next multiple that the profile recommends, with the gain of measured sizes that divide like `n`."""
    from gputune.errors import UsageError
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
    return _answer(n, padded if gain is None or gain.low > 1 else n, gain, where)


def _measure(n: int, dtype: str | None) -> _Answer:
    """Measure on the first GPU or, without any, on the CPU."""
    from gputune import probing
    from gputune.bench_process import MatmulShape
    from gputune.errors import MeasureError
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
    return _answer(n, int(best[0].params["n"]), best[1], where)


@dataclass(frozen=True, slots=True)
class _Answer:
    n: int
    padded: int
    gain: float | None
    interval: tuple[float, float] | None
    measured: str

    @property
    def sentence(self) -> str:
        if self.padded == self.n:
            return f"keep {self.n}: no {'certain ' if self.gain else ''}gain from padding ({self.measured})"
        times = f"{self.gain:.3g} times as fast" if self.gain else "faster"
        interval = f" ({self.interval[0]:.3g} to {self.interval[1]:.3g})" if self.interval else ""
        return f"pad {self.n} to {self.padded}: {times}{interval} ({self.measured})"


def _answer(n: int, padded: int, gain: Comparison | None, where: str) -> _Answer:
    return _Answer(n, padded, gain.ratio if gain else None, gain.interval if gain else None, where)
