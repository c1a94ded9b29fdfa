"""`gputune pad`: what a dimension of a model should be padded to, and what that is worth."""

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
        int, typer.Argument(metavar="N", help="A dimension of a model: features, a vocabulary.", min=1, max=1 << 24)
    ],
    dtype: Annotated[
        str | None,
        typer.Option(
            help="bfloat16, float16, tf32 or float32 (bf16 and so on will do).", show_default="what suits the device"
        ),
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="Answer from this profile instead of measuring here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Say what to pad a dimension to, and how much faster that is."""
    import json

    name = _dtype(dtype) if dtype else None
    answer = _from_profile(profile, n, name or "bfloat16") if profile else _measured(n, name)
    if as_json:
        print(json.dumps(asdict(answer)))
    else:
        print(answer.sentence)


def _dtype(name: str) -> str:
    from gputune.benches.matmul_shapes import DTYPES
    from gputune.errors import UsageError

    full = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}.get(
        name, name
    )
    if full not in DTYPES:
        raise UsageError(f"--dtype {name[:40]}: there is no such dtype here", f"choose from {', '.join(DTYPES)}")
    return full


def _from_profile(path: Path, n: int, dtype: str) -> _Answer:
    """By the profile's multiple for the dtype, and what sizes that divide alike gained there."""
    from gputune.errors import UsageError
    from gputune.profile import load
    from gputune.settings import dimension_multiple

    found = load(path)
    multiples: Any = found.settings["dimension_multiple"].value if "dimension_multiple" in found.settings else {}
    if dtype not in multiples:
        raise UsageError(
            f"{path}: holds no alignment of {dtype}",
            "measure it: gputune probe --budget thorough, or leave --profile out",
        )
    padded = -(-n // multiples[dtype]) * multiples[dtype]
    gain = dimension_multiple.padding_gain(found.measurements, dtype, n, padded) if padded != n else None
    where = f"{dtype}, by the sizes measured on {found.fingerprint.device or 'an unknown device'}"
    return _answer(n, padded if gain is None or gain.low > 1 else n, gain, where)


def _measured(n: int, dtype: str | None) -> _Answer:
    """Measured now, on the first GPU or, without any, on the CPU."""
    from gputune import probing
    from gputune.bench_process import MatmulShape
    from gputune.errors import MeasureError
    from gputune.report.progress import shown
    from gputune.report.terminal import print_findings
    from gputune.settings import dimension_multiple

    request = probing.Request(budget="quick", only=["matmul_shapes"], shapes=[MatmulShape(n=n, dtype=dtype)])
    with shown() as progress:
        found = probing.probe(request, progress=progress)
    print_findings([one for one in found.findings if one.check == "measured_alone"], sys.stderr, least="WARNING")
    best = dimension_multiple.least_padding(found.measurements)
    if best is None:
        raise MeasureError(f"{n}: too few samples to tell", "try again on an idle machine")
    where = f"{best[0].params['shape']} on {found.fingerprint.device or 'an unknown device'}"
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
