"""`gputune pad`: what a dimension of a model should be padded to, and what that is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gputune.benches import MatmulShape
    from gputune.measurement import Comparison

M, K = 8192, 768
"""Of the matmul that a size is measured in: the tokens of a batch times a small model's width, as in its last layer."""
CPU_M, CPU_K = 256, 256
MOST_OUTPUTS = 1 << 29


def pad(
    n: Annotated[int, typer.Argument(help="A dimension of a model: features, a vocabulary.", min=1, max=1 << 24)],
    dtype: Annotated[
        str, typer.Option(help="bfloat16, float16, tf32 or float32 (bf16 and so on will do).")
    ] = "bfloat16",
    profile: Annotated[Path | None, typer.Option(help="Answer from this profile instead of measuring here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Say what to pad a dimension to, and how much faster that is."""
    import json

    name = _dtype(dtype)
    padded, gain, where = _from_profile(profile, n, name) if profile else _measured(n, name)
    if as_json:
        print(json.dumps({
            "n": n, "dtype": name, "padded": padded, "gain": gain and gain.ratio,
            "interval": gain and list(gain.interval), "measured": where,
        }))  # fmt: skip
    else:
        print(_sentence(n, padded, gain, f"{name}, {where}"))


def _dtype(name: str) -> str:
    from gputune.benches.matmul_shapes import DTYPES
    from gputune.errors import UsageError

    full = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}.get(
        name, name
    )
    if full not in DTYPES:
        raise UsageError(f"--dtype {name[:40]}: there is no such dtype here", f"choose from {', '.join(DTYPES)}")
    return full


def _sentence(n: int, padded: int, gain: Comparison | None, where: str) -> str:
    if padded == n:
        return f"keep {n}: no gain from padding ({where})"
    times = f"{gain.ratio:.3g} times as fast ({gain.low:.3g} to {gain.high:.3g})" if gain else "faster"
    return f"pad {n} to {padded}: {times} ({where})"


def _from_profile(path: Path, n: int, dtype: str) -> tuple[int, Comparison | None, str]:
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
    gain = dimension_multiple.gain_of(found.measurements, dtype, n, padded) if padded != n else None
    return padded, gain, f"by sizes around 4096 on {found.fingerprint.device or 'an unknown device'}"


def _measured(n: int, dtype: str) -> tuple[int, Comparison | None, str]:
    """Measured now, on the first GPU or, without any, on the CPU."""
    from gputune import probing
    from gputune.errors import MeasureError
    from gputune.facts import gpu
    from gputune.host import Host
    from gputune.report.progress import shown
    from gputune.settings import dimension_multiple

    m, k = (M, K) if gpu.present(Host()) else (CPU_M, CPU_K)
    shape = _shape(n, m, k, dtype)
    with shown() as progress:
        found = probing.probe(
            probing.Request(budget="quick", only=["matmul_shapes"], shapes=[shape]), progress=progress
        )
    best = dimension_multiple.least_padding(found.measurements)
    if best is None:
        raise MeasureError(f"{n}: too few samples to tell", "try again on an idle machine")
    padded, gain = best
    return padded, gain, f"as {shape.m} x {n} x {shape.k} on {found.fingerprint.device or 'an unknown device'}"


def _shape(n: int, m: int, k: int, dtype: str) -> MatmulShape:
    """With fewer rows where the output would be huge otherwise."""
    from gputune.benches import MatmulShape

    return MatmulShape(m=max(64, min(m, MOST_OUTPUTS // n)), n=n, k=k, dtype=dtype)
