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
from ._evidence import change, compared, keep, lacking, no_gain, one, pooled, range_text, text
from ._training import (
    BENCH,
    MIXED,
    allowed,
    base_precision,
    families,
    first_best,
    guard_words,
    refusals,
)
from .matmul_precision import TF32_ERROR, one_error
from .matmul_precision import recommend as recommend_matmul

VALUE = Literal["bfloat16", "float16"] | None
PHASE: Phase = "code"
USE = "with tuning.autocast():"
NUMERICS: Numerics = "mixed"
DEPENDS = ("device", "compute_capability")

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
        return keep(None, refused.removeprefix("; ") or "this device multiplies neither bfloat16 nor float16 natively")
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
    return keep(None, f"{no_gain(comparison)}: {what}{refused}", [BENCH], comparison)


def _of_all(measurements: Any, networks: list[str]) -> Choice:
    """For a network of no known kind: the dtype that gains over all that were measured."""
    refused = {name for network in networks for name in refusals(measurements, network)}
    gains = {name: _over_all(measurements, networks, name) for name in MIXED if name not in refused}
    known = {name: gain for name, gain in gains.items() if gain}
    if not known:
        return keep(None, "the accuracy guard refused it" if refused else lacking(*gains.values()))
    name = "bfloat16" if "bfloat16" in known else "float16"
    if "float16" in known and known["float16"].low > WORTH_A_SCALER * known[name].high:
        name = "float16"
    what = f"training steps ({', '.join(networks)}) in {name} ran {range_text(known[name])} as fast as without"
    if known[name].verdict == "gain":
        return change(name, known[name], f"{what}, though not each kind of network: see families", [BENCH])
    return keep(None, f"{no_gain(known[name])}: {what}", [BENCH], known[name])


def _over_all(measurements: Any, networks: list[str], dtype: str) -> Any:
    """The gain of a dtype over the networks, each in its own best memory format; None where one lacks it."""
    mixed: list[Any] = []
    base: list[Any] = []
    for network in networks:
        rows, chosen = allowed(measurements, network), first_best(measurements, network)
        if chosen is None:
            return None
        mixed.append(rows.get(replace(chosen, precision=dtype)))
        base.append(rows.get(replace(chosen, precision=base_precision(rows))))
    return pooled(mixed, base) if all(mixed) and all(base) else None


def _name(precision: str) -> str:
    return "TF32" if precision == "tf32" else "FP32"


def _of_matmuls(facts: Any, measurements: Any) -> Choice:
    """What a budget without training steps can say."""
    base_name = "tf32" if recommend_matmul(facts, measurements).value == "tf32" else "float32"
    base = one(measurements, "precision", "throughput", dtype=base_name)
    rows = {name: one(measurements, "precision", "throughput", dtype=name) for name in MIXED}
    measured = {name: row for name, row in rows.items() if row is not None}
    if base is not None and not measured:
        return keep(None, "this device multiplies neither bfloat16 nor float16 natively")
    if base is None:
        return keep(None, lacking(base))
    name, row = _better(measured)
    comparison = compared(row, base)
    if comparison is None:
        return keep(None, lacking(base, row))
    label = _label(base_name, measurements)
    if comparison.verdict == "gain":
        return change(name, comparison, _why(name, row, base, label, measurements), ["precision"])
    return keep(
        None,
        f"{no_gain(comparison)}: {name} matmul ran {range_text(comparison)} as fast as {label}",
        ["precision"],
        comparison,
    )


def _better(measured: dict[str, Any]) -> tuple[str, Any]:
    """Of both, bfloat16, unless float16 is so much faster that it is worth its GradScaler and its narrow range."""
    if len(measured) == 2:
        advantage = compared(measured["float16"], measured["bfloat16"])
        if advantage and advantage.low > 1 and advantage.ratio > WORTH_A_SCALER:
            return "float16", measured["float16"]
    return next(iter(measured.items()))


def _why(name: str, row: Any, base: Any, label: str, measurements: Any) -> str:
    scaler = "with a GradScaler" if name == "float16" else "no GradScaler needed"
    return (
        f"{name} matmul ran at {text(row.median)} against {text(base.median)} TFLOP/s of {label}; "
        f"relative error {one_error(measurements, name):.1e}; {scaler}; training steps not measured in this run's budget"
    )


def _label(dtype: str, measurements: Any) -> str:
    """What the baseline ran in, by its error: NVIDIA_TF32_OVERRIDE=1 makes TF32 of full FP32."""
    if dtype == "tf32":
        return "TF32"
    return "FP32, which ran as TF32" if one_error(measurements, "float32") >= TF32_ERROR else "FP32"
