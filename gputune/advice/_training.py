"""Which combination of options trains a reference network fastest, read from its measured steps.

Each network's steps are measured in two groups. The first (`stage` "precision") takes every precision, in both memory
formats where there are images; the second ("options") every combination of the other options on the first's best.

**The rule**: of torch's defaults and the combinations that gain over them (the interval excludes 1 and the gain
exceeds 3 %) the plainest over which the fastest of them does not gain in turn. So each step away from the defaults
has to be worth it, and what is recommended is never slower than they are. (But for the fused optimizer, which a network
has where all together gain by it and it is not slower itself.) Mixed precision changes results and takes
lines in the script: the fastest of it must gain 10 % over the fastest without, or it is out of the question.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gputune.advice import Choice, Comparison, Measurement, Measurements
from gputune.advice._evidence import beats, compared, decide, missing, pooled, select, unmeasured
from gputune.advice._training_rows import BENCH, Steps, families, precision_of, refusals, steps, without_options
from gputune.measurement import LEAST_GAIN
from gputune.search.choice import plainest, plainness
from gputune.search.combination import Combination

WORTH_MIXED = 1.10
WORTH_SEARCH = 1.10
"""The ratio that cuDNN's own search must certainly exceed: it costs time at every new shape, and memory."""
MOST_MEMORY = 1.25
"""How many times the peak memory may be that cuDNN's own search takes. (It tripled that of a U-Net.)"""
IN_FASTEST = "part of the combination that gains"
NOT_IN_PLAINEST = "a plainer combination is about as fast as the fastest"
LIKE_ALL = "on for all networks, and here it does not certainly lose"


def best_of(rows: Steps) -> Combination | None:
    if not rows:
        return None

    def speed(one: Combination) -> float:
        return rows[one].median

    default = min(rows, key=_order)
    gaining = [one for one in rows if one == default or beats(rows[one], rows[default])]
    exact = [one for one in gaining if one.level != "mixed"]
    fastest = max(gaining, key=speed)
    if exact and fastest.level == "mixed":
        gain = compared(rows[fastest], rows[max(exact, key=speed)])
        if gain is None or gain.verdict != "gain" or gain.ratio <= WORTH_MIXED:
            fastest = max(exact, key=speed)
    others = [one for one in gaining if (one in exact) == (fastest in exact)]
    return plainest(fastest, others, lambda one: beats(rows[fastest], rows[one]), _order)


def _order(combination: Combination) -> tuple[Any, ...]:
    """A sort key, the plainest first. No two combinations are equal, so neither noise nor the order of rows decides:
    float16, which needs a loss scaler, comes last, and what `flags` names earlier comes later.
    """
    flags = ("compile", "fused_optimizer", "cudnn_benchmark", "channels_last")
    return (*plainness(combination), precision_of(combination) == "float16", *(name in combination for name in flags))


def allowed(measurements: Measurements, network: str) -> dict[Combination, Measurement]:
    """The first group without the precisions that the accuracy guard refused."""
    refused = refusals(measurements, network)
    rows = steps(measurements, network, "precision")
    return {one: row for one, row in rows.items() if precision_of(one) not in refused}


def first_best(measurements: Measurements, network: str) -> Combination | None:
    return best_of(allowed(measurements, network))


def best(measurements: Measurements, network: str) -> Combination | None:
    """The combination to recommend; None where the network's steps were not measured."""
    return _best_of_options(measurements, network) or first_best(measurements, network)


def options(measurements: Measurements, network: str) -> Steps:
    """The second group, without cuDNN's own search where that does not pay."""
    rows = steps(measurements, network, "options")
    gain, memory = search_gain(measurements, network), search_memory(measurements, network)
    if gain and gain.low > WORTH_SEARCH and memory is not None and memory <= MOST_MEMORY:
        return rows
    return {one: row for one, row in rows.items() if "cudnn_benchmark" not in one}


def has_fused_like_all(measurements: Measurements, network: str) -> bool:
    """Whether a network has the fused optimizer although its own steps do not certainly gain by it: where those of all
    together do, unless its own are certainly slower, or by `LEAST_GAIN`. Else what lies close to 1 would come and go.
    """
    rows = options(measurements, network)
    chosen = best_of(rows)
    if chosen is None or "fused_optimizer" in chosen:
        return False
    comparison = compared(rows.get(chosen.plus("fused_optimizer", True)), rows[chosen])
    if comparison is None or comparison.high < 1 or comparison.ratio < 1 / LEAST_GAIN:
        return False
    return bool(choice_everywhere(measurements, "fused_optimizer", "{}", free=True)[0].value)


def _best_of_options(measurements: Measurements, network: str) -> Combination | None:
    chosen = best_of(options(measurements, network))
    is_fused = chosen and has_fused_like_all(measurements, network)
    return chosen.plus("fused_optimizer", True) if chosen and is_fused else chosen


def search_gain(measurements: Measurements, network: str) -> Comparison | None:
    """The speed of the steps with cuDNN's own search over that without, whose other options are the fastest."""
    rows = steps(measurements, network, "options")
    pairs = {one.minus("cudnn_benchmark"): one for one in rows if "cudnn_benchmark" in one}
    without = [one for one in pairs if one in rows]
    if not without:
        return None
    fastest = max(without, key=lambda one: rows[one].median)
    return compared(rows[pairs[fastest]], rows[fastest])


def search_memory(measurements: Measurements, network: str) -> float | None:
    """The peak memory of a first step with cuDNN's own search, in which it searches, by that of one without."""
    rows = select(measurements, BENCH, "peak_memory", network=network, stage="options")
    peaks = {bool(row.params.get("cudnn_benchmark")): row.median for row in rows}
    return peaks[True] / peaks[False] if peaks.get(False) and True in peaks else None


def base_precision(rows: Steps) -> str:
    """The precision that mixed precision must gain over: TF32 where it was measured."""
    return "tf32" if any(precision_of(one) == "tf32" for one in rows) else "float32"


def option(measurements: Measurements, network: str, flag: str) -> tuple[bool, Comparison | None] | None:
    """Whether the best combination has a flag, and its speed with against without; None where not measured."""
    in_first = flag == "channels_last"
    rows = allowed(measurements, network) if in_first else options(measurements, network)
    chosen = best_of(rows) if in_first else _best_of_options(measurements, network)
    if chosen is None or not any(flag in one for one in rows):
        return None
    return flag in chosen, compared(rows.get(chosen.plus(flag, True)), rows.get(chosen.minus(flag)))


def choice_of_option(measurements: Measurements, network: str, flag: str, what: str) -> Choice | None:
    """A family's choice for a flag; `what` names the steps with it. None where the flag has no samples, or too few."""
    chosen, comparison = option(measurements, network, flag) or (False, None)
    if comparison is None:
        return None
    why = IN_FASTEST if chosen else NOT_IN_PLAINEST
    if flag == "fused_optimizer" and has_fused_like_all(measurements, network):
        why = LIKE_ALL
    return decide(comparison, what, BENCH, chosen=chosen, why=why)


def losing(pairs: Mapping[str, tuple[Measurement | None, Measurement | None]]) -> list[str]:
    return [name for name, pair in pairs.items() if (gain := compared(*pair)) and gain.high < 1]


def but_for(names: Sequence[str]) -> str:
    """The end of a reason that names the kinds of network which lost; empty without any."""
    return f", though {' and '.join(names)} ran slower (see families)" if names else ""


def pairs_of(measurements: Measurements, flag: str) -> dict[str, tuple[Measurement, Measurement]]:
    """By network, the rows of its steps with a flag alone and without; of those with enough samples, if any has."""
    pairs = {}
    for network in families(measurements):
        rows = steps(measurements, network, "options")
        base = next((one for one in rows if one == without_options(one)), None)
        if base is not None and (with_flag := base.plus(flag, True)) in rows:
            pairs[network] = (rows[with_flag], rows[base])
    return {network: pair for network, pair in pairs.items() if compared(*pair)} or pairs


def pooled_pairs(pairs: Mapping[str, tuple[Measurement, Measurement]]) -> Comparison | None:
    """How much faster the first rows of the pairs are than the second, over all networks together."""
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
    gaining = [name for name, pair in enough.items() if beats(*pair)]
    for_one = free and comparison.ratio > 1 and not slower and bool(gaining)
    chosen, why = comparison.verdict == "gain" or for_one, f"{' and '.join(gaining)} gains and none loses"
    what = what.format(", ".join(enough))
    return decide(comparison, what, BENCH, chosen=chosen, why=why), slower
