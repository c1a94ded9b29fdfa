"""Which combinations of the candidates each stage of a search compares with the best one so far. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gputune.settings import Value
from gputune.trials.combination import Combination

Candidates = Mapping[str, Value]


def precisions(start: Combination, candidates: Candidates, *, images: bool) -> list[Combination]:
    """Each precision, alone and with TF32 for what mixed precision leaves in FP32, in both memory formats."""
    tf32, half = _of("matmul_precision", candidates), _of("amp_dtype", candidates)
    last = _of("channels_last", candidates) if images else {}
    found = [tf32, half, {**tf32, **half}]
    found += [{**one, **last} for one in ({}, *found)] if last else []
    return list(dict.fromkeys(start.with_all(one) for one in found if one))


def options(best: Combination, candidates: Candidates) -> list[Combination]:
    """The optimizer's form, and with it each of the libraries' own choices; without such a form each of these alone."""
    choices = ("fused_optimizer", "inference_mode", "cudnn_benchmark", "sdpa_backend", "omp_threads")
    names = [name for name in choices if name in candidates]
    fused = "fused_optimizer" in names
    alone = [best.plus(name, candidates[name]) for name in names]
    start = best.plus("fused_optimizer", True) if fused else best
    together = [start.plus(name, candidates[name]) for name in names if name != "fused_optimizer"] if fused else []
    return [*alone[:1], *together] if fused else alone


def to_compile(light: Combination, candidates: Candidates) -> list[Combination]:
    """The combinations of which the first one is compiled that is not known to fail: in mixed precision with TF32
    beside it, whatever that was worth uncompiled. A compiled program may call kernels of FP32 where the same one
    uncompiled calls none; kernels of bfloat16 are the same with TF32 as without.
    """
    with_tf32 = light.with_all(_of("matmul_precision", candidates) if "amp_dtype" in light.values else {})
    return list(dict.fromkeys([with_tf32, light]))


def _of(name: str, candidates: Candidates) -> dict[str, Value]:
    return {name: candidates[name]} if name in candidates else {}
