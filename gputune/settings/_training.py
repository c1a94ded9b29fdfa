"""Which combination of options trains a reference network fastest, read from its measured steps.

Each network's steps are measured in two groups. The first (`stage` "precision") takes every precision, in both memory
formats where there are images; the second ("options") every combination of the other options on the first's best.

**The rule**: of torch's defaults and the combinations that gain over them (the interval excludes 1 and the gain
exceeds 3 %) the simplest over which the fastest of them does not gain in turn. So each step away from the defaults
has to be worth it, and what is recommended is never slower than they are. Mixed precision changes results and takes
lines in the script: the fastest of it must gain 10 % over the fastest without, or it is out of the question. (Where
the host is the limit, as for a small network, its gain is the host's of the moment: an H200's MLP ran 0.88 to 0.91
times as fast in it in four probes, and in one of ten others it came out ahead.)

**The accuracy guard**: a precision is refused when its final loss differs from FP32's, after the same steps from the
same seed, by more than twice the standard deviation between FP32's own seeds, or when its GradScaler skipped more
than two steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import Choice, Comparison, Measurement, Measurements
from ._evidence import beats, compared, decide, missing, pooled, select, unmeasured
from ._rows import Row

BENCH = "training_step"
FAMILIES = ("mlp", "convnet", "transformer", "recurrent")
PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
"""The simplest first. `float32` is what torch does untouched: FP32 matmuls, and convolutions and LSTMs in TF32."""
MIXED = ("bfloat16", "float16")
FLAGS = ("channels_last", "cudnn_benchmark", "fused", "compiled")

WORTH_MIXED = 1.10
WORTH_SEARCH = 1.10
"""What cuDNN's own search must certainly gain: it costs time at every new shape, and memory."""
MOST_MEMORY = 1.25
"""How many times the peak memory may be that cuDNN's own search takes. (It tripled that of a U-Net.)"""
LEAST_FALL = 0.2
"""FP32's loss must fall by this much for the final losses to mean anything."""
MOST_SKIPPED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """The options of a training step; by default torch's."""

    precision: str = "float32"
    channels_last: bool = False
    cudnn_benchmark: bool = False
    fused: bool = False
    compiled: bool = False

    @property
    def simplicity(self) -> tuple[int, ...]:
        """A sort key: how far it is from torch's defaults."""
        flags = [getattr(self, flag) for flag in FLAGS]
        rank = PRECISIONS.index(self.precision)
        return (rank + sum(flags), rank, *flags[::-1])

    @property
    def params(self) -> dict[str, str | int | float | bool]:
        """The keys that a row's params hold; a flag that is off is left out."""
        return {"precision": self.precision, **{flag: True for flag in FLAGS if getattr(self, flag)}}


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


Steps = Mapping[Combination, "Measurement"]
Training = tuple[FinalLoss, float]


def steps(measurements: Measurements, network: str, stage: str) -> dict[Combination, Measurement]:
    """The rows of a network's steps in one group, by combination; rows of a file may be of another version."""
    rows = select(measurements, BENCH, "throughput", network=network, stage=stage)
    rows = [row for row in rows if row.params.get("precision") in PRECISIONS]
    flags = [{flag: bool(row.params.get(flag, False)) for flag in FLAGS} for row in rows]
    return {Combination(precision=str(row.params["precision"]), **on): row for row, on in zip(rows, flags, strict=True)}


def families(measurements: Measurements) -> list[str]:
    """The networks whose steps were measured."""
    return [name for name in FAMILIES if steps(measurements, name, "precision")]


def best_of(rows: Steps) -> Combination | None:
    """The combination to recommend from one group; None from an empty one."""
    if not rows:
        return None

    def speed(one: Combination) -> float:
        return rows[one].median

    default = min(rows, key=lambda one: one.simplicity)
    gaining = [one for one in rows if one == default or beats(rows[one], rows[default])]
    mixed = max((one for one in gaining if one.precision in MIXED), key=speed, default=None)
    exact = max((one for one in gaining if one.precision not in MIXED), key=speed, default=None)
    gain = compared(rows[mixed], rows[exact]) if mixed and exact else None
    worth_mixing = gain is not None and gain.verdict == "gain" and gain.ratio > WORTH_MIXED
    fastest = mixed if mixed and (exact is None or worth_mixing) else exact or default
    candidates = [one for one in gaining if (one.precision in MIXED) == (fastest.precision in MIXED)]
    as_good = [one for one in candidates if not beats(rows[fastest], rows[one])]
    return min(as_good, key=lambda one: one.simplicity)


def allowed(measurements: Measurements, network: str) -> dict[Combination, Measurement]:
    """The first group without the precisions that the accuracy guard refused."""
    refused = refusals(measurements, network)
    return {one: row for one, row in steps(measurements, network, "precision").items() if one.precision not in refused}


def first_best(measurements: Measurements, network: str) -> Combination | None:
    """The best precision and memory format."""
    return best_of(allowed(measurements, network))


def best(measurements: Measurements, network: str) -> Combination | None:
    """The combination to recommend; None where the network's steps were not measured."""
    return best_of(options(measurements, network)) or first_best(measurements, network)


def options(measurements: Measurements, network: str) -> Steps:
    """The second group, without cuDNN's own search where that does not pay."""
    rows = steps(measurements, network, "options")
    if (gain := search_gain(measurements, network)) and gain.low > WORTH_SEARCH:
        memory = search_memory(measurements, network)
        if memory is not None and memory <= MOST_MEMORY:
            return rows
    return {one: row for one, row in rows.items() if not one.cudnn_benchmark}


def search_gain(measurements: Measurements, network: str) -> Comparison | None:
    """The speed of the steps with cuDNN's own search over that without, whose other options are the fastest."""
    rows = steps(measurements, network, "options")
    without = [one for one in rows if not one.cudnn_benchmark and _set(one, "cudnn_benchmark", True) in rows]
    if not without:
        return None
    fastest = max(without, key=lambda one: rows[one].median)
    return compared(rows[_set(fastest, "cudnn_benchmark", True)], rows[fastest])


def search_memory(measurements: Measurements, network: str) -> float | None:
    """The peak memory of a first step with cuDNN's own search, in which it searches, by that of one without."""
    rows = select(measurements, BENCH, "peak_memory", network=network, stage="options")
    peaks = {bool(row.params.get("cudnn_benchmark")): row.median for row in rows}
    return peaks[True] / peaks[False] if peaks.get(False) and True in peaks else None


def refusals(measurements: Measurements, network: str) -> dict[str, str]:
    """By precision, why the accuracy guard refuses it; empty where the guard did not run or accepts all."""
    runs = _trainings(measurements, network)
    exact = [(run, loss) for run, loss in runs if run.precision == "float32"]
    reasons = {
        run.precision: _broken(run) or _differing(loss, exact) for run, loss in runs if run.precision != "float32"
    }
    return {precision: reason for precision, reason in reasons.items() if reason}


def _trainings(measurements: Measurements, network: str) -> list[Training]:
    """The accuracy guard's trainings of a network."""
    rows = select(measurements, BENCH, "final_loss", network=network)
    return [(run, row.median) for row in rows if (run := FinalLoss.of(row.params))]


def _broken(run: FinalLoss) -> str | None:
    if run.diverged:
        return "its loss became infinite or no number"
    if run.skipped and run.skipped > MOST_SKIPPED:
        return f"its GradScaler skipped {run.skipped} of {run.steps} steps"
    return None


def _differing(loss: float, exact: Sequence[Training]) -> str | None:
    """Why a final loss is refused beside those of FP32, or None."""
    if not _comparable(exact):
        return None
    from statistics import stdev  # slow to import, and the shim imports this file

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
    falls = [1 - loss / run.first_loss for run, loss in exact if run.seed == 0]
    return len(exact) >= 2 and bool(falls) and falls[0] >= LEAST_FALL


def guard_words(measurements: Measurements, network: str) -> str:
    """The part of a reason that says how accurate the recommended precision is."""
    exact = [training for training in _trainings(measurements, network) if training[0].precision == "float32"]
    if _comparable(exact):
        return "its final loss differs from FP32's by no more than FP32's seeds do"
    if len(exact) >= 2:
        return "FP32's own loss fell too little to compare final losses"
    return "final losses not compared in this run's budget"


def base_precision(rows: Steps) -> str:
    """The precision that mixed precision must gain over: TF32 where it was measured."""
    return "tf32" if any(one.precision == "tf32" for one in rows) else "float32"


def option(measurements: Measurements, network: str, flag: str) -> tuple[bool, Comparison | None] | None:
    """Whether the best combination has a flag, and its speed with against without; None where not measured."""
    rows = allowed(measurements, network) if flag == "channels_last" else options(measurements, network)
    chosen = best_of(rows)
    if chosen is None or not any(getattr(one, flag) for one in rows):
        return None
    on, off = (rows.get(_set(chosen, flag, value)) for value in (True, False))
    return bool(getattr(chosen, flag)), compared(on, off)


def choice_of_option(measurements: Measurements, network: str, flag: str, what: str) -> Choice | None:
    """A family's choice for a flag; `what` names the steps with it. None where the flag has no samples, or too few."""
    chosen, comparison = option(measurements, network, flag) or (False, None)
    return decide(comparison, (False, True), what, BENCH, chosen=chosen) if comparison else None


def _set(combination: Combination, flag: str, value: bool) -> Combination:
    changed: dict[str, Any] = {flag: value}
    return replace(combination, **changed)


def losing(pairs: Mapping[str, tuple[Measurement | None, Measurement | None]]) -> list[str]:
    """The names whose first row is certainly slower than their second."""
    comparisons = {name: compared(*pair) for name, pair in pairs.items()}
    return [name for name, comparison in comparisons.items() if comparison is not None and comparison.high < 1]


def but_for(names: Sequence[str]) -> str:
    """The end of a reason that names the kinds of network which lost; empty without any."""
    return f", though {' and '.join(names)} ran slower (see families)" if names else ""


def pairs_of(measurements: Measurements, flag: str) -> dict[str, tuple[Measurement, Measurement]]:
    """By network, the rows of its steps with a flag alone and without; of those with enough samples, if any has."""
    pairs = {}
    for network in families(measurements):
        rows = steps(measurements, network, "options")
        base = next((one for one in rows if not (one.fused or one.compiled or one.cudnn_benchmark)), None)
        with_flag = _set(base, flag, True) if base else None
        if base and with_flag in rows:
            pairs[network] = (rows[with_flag], rows[base])
    return {network: pair for network, pair in pairs.items() if compared(*pair)} or pairs


def pooled_pairs(pairs: Mapping[str, tuple[Measurement, Measurement]]) -> Comparison | None:
    """The gain over all networks."""
    return pooled([on for on, _ in pairs.values()], [off for _, off in pairs.values()])


def choice_everywhere(
    measurements: Measurements, flag: str, what: str, *, free: bool = False
) -> tuple[Choice, list[str]]:
    """The choice for a flag over all networks, and the networks that are slower with it. `what` names the steps with
    it, with `{}` for the networks.

    It is on where it gains over all. What is `free` but for a line in the script is on as well where it gains for one
    and certainly slows none down: a small network's steps are the host's, and scatter by a fifth. Networks with too few
    samples are left out, unless none has enough.
    """
    enough = pairs_of(measurements, flag)
    comparison = pooled_pairs(enough)
    if comparison is None:
        return unmeasured(False, missing(enough)), []
    slower = losing(enough)
    for_one = free and comparison.ratio > 1 and not slower and any(beats(*pair) for pair in enough.values())
    chosen = comparison.verdict == "gain" or for_one
    return decide(comparison, (False, True), what.format(", ".join(enough)), BENCH, chosen=chosen), slower
