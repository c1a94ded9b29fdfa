"""The dtype of automatic mixed precision: `bfloat16`, `float16` or none.

`torch.autocast` runs matmuls and convolutions in the named dtype and keeps the rest in FP32. bfloat16 has FP32's range
and needs nothing else; float16 overflows at 65504 and its gradients vanish below 6e-8, so a GradScaler belongs with it:
`Tuning.grad_scaler()` is enabled for float16 only. Below compute capability 8.0 torch emulates bfloat16 slowly, so float16
is the choice there. What pays differs by kind of network: casting costs time of its own, so a small network may lose.
Mixed precision changes results, so it is never applied behind the user's back: it takes a line in the training script.

Source: PyTorch, "Automatic Mixed Precision" recipe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from . import Choice, Numerics, Phase
from ._evidence import NOT_MEASURED, TOO_FEW, change, compared, keep, lacking, no_gain, one, pooled, range_text
from ._training import (
    BENCH,
    MIXED,
    WORTH_MIXED,
    allowed,
    base_precision,
    but_for,
    families,
    first_best,
    guard_words,
    losing,
    refusals,
)
from .matmul_precision import recommend as recommend_matmul

VALUE = Literal["bfloat16", "float16"] | None
PHASE: Phase = "code"
USE = "with tuning.autocast():"
NUMERICS: Numerics = "mixed"
DEPENDS = ("device", "compute_capability")

NEITHER = "this device multiplies neither bfloat16 nor float16 natively"
WORTH_A_SCALER = 1.25
"""For a network of no known kind float16 must be so many times as fast as bfloat16 to be chosen over it."""


def recommend(facts: Any, measurements: Any) -> Choice:
    networks = families(measurements)
    return _of_all(measurements, networks) if networks else _of_matmuls(facts, measurements)


def of_family(facts: Any, measurements: Any, family: str) -> Choice | None:
    rows, chosen = allowed(measurements, family), first_best(measurements, family)
    if chosen is None:
        return None
    refused = "".join(f"; {name} refused: {why}" for name, why in refusals(measurements, family).items())
    candidates = [one for one in rows if one.precision in MIXED and one.channels_last == chosen.channels_last]
    if not candidates:
        return keep(None, refused.removeprefix("; ") or NEITHER)
    mixed = chosen if chosen in candidates else max(candidates, key=lambda one: rows[one].median)
    base = replace(chosen, precision=base_precision(rows))
    comparison = compared(rows[mixed], rows.get(base))
    if comparison is None:
        return keep(None, lacking(rows.get(base), rows[mixed]))
    what = f"its steps in {mixed.precision} ran {range_text(comparison)} as fast as in {_name(base.precision)}"
    if mixed is chosen:
        scaler = ", with a GradScaler" if mixed.precision == "float16" else ""
        return change(
            mixed.precision, comparison, f"{what}{scaler}; {guard_words(measurements, family)}{refused}", [BENCH]
        )
    return keep(None, f"{_not_worth(comparison)}: {what}{refused}", [BENCH], comparison)


def _of_all(measurements: Any, networks: list[str]) -> Choice:
    """For a network of no known kind: the dtype that gains over all that were measured."""
    refused = {name for network in networks for name in refusals(measurements, network)}
    pairs = {name: _pairs(measurements, networks, name) for name in MIXED if name not in refused}
    gains = {name: _pooled(found) for name, found in pairs.items()}
    known = {name: gain for name, gain in gains.items() if gain}
    if not known:
        return keep(None, _why_none(measurements, networks, refused))
    name = "bfloat16" if "bfloat16" in known else "float16"
    if "float16" in known and known["float16"].low > WORTH_A_SCALER * known[name].high:
        name = "float16"
    what = f"training steps ({', '.join(networks)}) in {name} ran {range_text(known[name])} as fast as without"
    if known[name].verdict == "gain" and known[name].ratio > WORTH_MIXED:
        return change(name, known[name], what + but_for(losing(pairs[name])), [BENCH])
    return keep(None, f"{_not_worth(known[name])}: {what}", [BENCH], known[name])


def _not_worth(comparison: Any) -> str:
    return "not worth mixed precision" if comparison.verdict == "gain" else no_gain(comparison)


def _pairs(measurements: Any, networks: list[str], dtype: str) -> dict[str, Any]:
    """Each network's steps in the dtype and without, in its own best memory format; but for those with too few samples."""
    found = {}
    for network in networks:
        rows, chosen = allowed(measurements, network), first_best(measurements, network)
        if chosen is not None:
            base = replace(chosen, precision=base_precision(rows))
            found[network] = (rows.get(replace(chosen, precision=dtype)), rows.get(base))
    return {network: pair for network, pair in found.items() if None in pair or compared(*pair)}


def _pooled(pairs: dict[str, Any]) -> Any:
    """None where a network lacks one of both."""
    whole = pairs and all(mixed and base for mixed, base in pairs.values())
    return pooled([mixed for mixed, _ in pairs.values()], [base for _, base in pairs.values()]) if whole else None


def _why_none(measurements: Any, networks: list[str], refused: set[str]) -> str:
    if refused:
        return "the accuracy guard refused it"
    tried = {one.precision for network in networks for one in allowed(measurements, network)}
    return TOO_FEW if tried & set(MIXED) else NEITHER


def _name(precision: str) -> str:
    return "TF32" if precision == "tf32" else "FP32"


def _of_matmuls(facts: Any, measurements: Any) -> Choice:
    """Without training steps nothing is recommended, whatever matmuls gain: casting may cost a network more."""
    base_name = "tf32" if recommend_matmul(facts, measurements).value == "tf32" else "float32"
    base = one(measurements, "precision", "throughput", dtype=base_name)
    row = next((row for name in MIXED if (row := one(measurements, "precision", "throughput", dtype=name))), None)
    if base is not None and row is None:
        return keep(None, NEITHER)
    comparison = compared(row, base)
    if comparison is None or row is None:
        return keep(None, lacking(base, row))
    name = row.params["dtype"]
    what = f"{name} matmul ran {range_text(comparison)} as fast as in {_name(base_name)}"
    return keep(None, f"training steps {NOT_MEASURED}; {what}", ["precision"], comparison)
