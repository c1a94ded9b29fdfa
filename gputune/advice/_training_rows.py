"""The measured rows of training steps and of the accuracy guard: what the benches write, and advice and charts read.

**The accuracy guard**: a precision is refused when its final loss differs from FP32's, after the same steps from the
same seed, by more than twice the standard deviation between FP32's own seeds, or when its GradScaler skipped more
than two steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

from gputune.advice import Measurement, Measurements
from gputune.advice._evidence import Row, select
from gputune.knobs import Value
from gputune.search.combination import DEFAULT, Combination

BENCH = "training_step"
FAMILIES = ("mlp", "convnet", "transformer", "recurrent")
TF32 = {"matmul_precision": "tf32"}
PRECISIONS: Mapping[str, Mapping[str, Value]] = {
    "float32": {}, "tf32": TF32, "bfloat16": {**TF32, "amp_dtype": "bfloat16"},
    "float16": {**TF32, "amp_dtype": "float16"},
}  # fmt: skip
"""The settings of each precision, the plainest first. `float32` is what torch does untouched: FP32 matmuls, and
convolutions and LSTMs in TF32. What mixed precision leaves in FP32 may run in TF32."""
MIXED = ("bfloat16", "float16")
OPTIONS = ("cudnn_benchmark", "fused_optimizer", "compile")
"""The settings of the second group."""
FLAGS = ("channels_last", *OPTIONS)
OLDER_NAMES = {"fused_optimizer": "fused", "compile": "compiled"}

LEAST_FALL = 0.2
"""FP32's loss must fall by this much for the final losses to mean anything."""
MOST_SKIPPED = 2


def combination_of(params: Mapping[str, object]) -> Combination | None:
    """The settings of a row of training steps; None if it has a precision that this version does not know. Rows of
    gputune 0.4 and before name the precision, and have other names of two settings.
    """
    flags = {name: True for name in FLAGS if params.get(name, params.get(OLDER_NAMES.get(name, name)))}
    own = {name: params[name] for name in ("matmul_precision", "amp_dtype") if name in params}
    own = {**TF32, **own} if "amp_dtype" in own else own  # which a device without TF32 need not say
    named = PRECISIONS.get(str(params["precision"])) if "precision" in params else own
    known = next((one for one in PRECISIONS.values() if one == named), None)
    return None if known is None else DEFAULT.with_all({**known, **flags})


def precision_of(combination: Combination) -> str:
    values = {name: value for name, value in combination.items if name not in FLAGS}
    return next(name for name, own in PRECISIONS.items() if own == values)


def with_precision(combination: Combination, precision: str) -> Combination:
    return combination.minus("amp_dtype", "matmul_precision").with_all(PRECISIONS[precision])


def without_options(combination: Combination) -> Combination:
    return combination.minus(*OPTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLoss(Row):
    """A training of the accuracy guard; the row's sample is its final loss."""

    network: str
    precision: str
    seed: int
    steps: int
    first_loss: float | int
    skipped: int | None = None
    """Steps that the GradScaler skipped; None without one."""
    diverged: bool = False


Steps = Mapping[Combination, Measurement]
Training = tuple[FinalLoss, float]
"""A training of the accuracy guard, and its final loss."""


def steps(measurements: Measurements, network: str, stage: str) -> dict[Combination, Measurement]:
    """The rows of a network's steps in one group, by combination; those with an unknown precision are left out."""
    rows = select(measurements, BENCH, "throughput", network=network, stage=stage)
    return {one: row for row in rows if (one := combination_of(row.params)) is not None}


def families(measurements: Measurements) -> list[str]:
    return [name for name in FAMILIES if steps(measurements, name, "precision")]


def refusals(measurements: Measurements, network: str) -> dict[str, str]:
    """By precision, why the accuracy guard refuses it; empty where the guard did not run or accepts all."""
    runs = _trainings(measurements, network)
    exact = [(run, loss) for run, loss in runs if run.precision == "float32"]
    reasons = {
        run.precision: _broken(run) or _differing(loss, exact) for run, loss in runs if run.precision != "float32"
    }
    return {precision: reason for precision, reason in reasons.items() if reason}


def _trainings(measurements: Measurements, network: str) -> list[Training]:
    rows = select(measurements, BENCH, "final_loss", network=network)
    return [(run, row.median) for row in rows if (run := FinalLoss.of(row.params))]


def _broken(run: FinalLoss) -> str | None:
    if run.diverged:
        return "its loss became infinite or no number"
    if run.skipped and run.skipped > MOST_SKIPPED:
        return f"its GradScaler skipped {run.skipped} of {run.steps} steps"
    return None


def _differing(loss: float, exact: Sequence[Training]) -> str | None:
    if not _comparable(exact):
        return None
    reference, scatter = next(loss for run, loss in exact if run.seed == 0), stdev(loss for _, loss in exact)
    if abs(loss - reference) > 2 * scatter:
        return f"its final loss was {loss:.4g} instead of FP32's {reference:.4g}, whose seeds scatter by {scatter:.2g}"
    return None


def refused_anywhere(measurements: Measurements, precision: str) -> str | None:
    """The first network whose guard refused a precision, with the reason."""
    reasons = ((network, refusals(measurements, network).get(precision)) for network in FAMILIES)
    return next((f"{network}: {reason}" for network, reason in reasons if reason), None)


def _comparable(exact: Sequence[Training]) -> bool:
    """Whether final losses compare: several seeds of FP32, none diverged, and the first fell far enough."""
    if any(run.diverged for run, _ in exact):
        return False
    falls = [loss <= (1 - LEAST_FALL) * run.first_loss for run, loss in exact if run.seed == 0]
    return len(exact) >= 2 and bool(falls) and falls[0]


def guard_words(measurements: Measurements, network: str) -> str:
    """The part of a reason that says how accurate the recommended precision is."""
    exact = [training for training in _trainings(measurements, network) if training[0].precision == "float32"]
    if _comparable(exact):
        return "its final loss differs from FP32's by no more than FP32's seeds do"
    if len(exact) >= 2:
        return "FP32's own loss fell too little to compare final losses"
    return "final losses not compared in this run's budget"
