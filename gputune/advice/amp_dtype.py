"""The dtype that gains in training steps and that the accuracy guard accepts."""

from collections.abc import Mapping

from gputune.advice import Choice, Comparison, Facts, Measurement, Measurements
from gputune.advice._evidence import TOO_FEW, choose, compared, missing, never, no_gain, pooled, range_text, unmeasured
from gputune.advice._training import WORTH_MIXED, allowed, base_precision, but_for, first_best, losing
from gputune.advice._training_rows import BENCH, MIXED, families, guard_words, precision_of, refusals, with_precision

WORTH = WORTH_MIXED
NEITHER = "this device multiplies neither bfloat16 nor float16 natively"
Pairs = Mapping[str, "tuple[Measurement | None, Measurement | None]"]

WORTH_A_SCALER = 1.25
"""For a network of no known kind float16 must be so many times as fast as bfloat16 to be chosen over it."""


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    """For a network of no known kind the dtype that gains over all networks that were measured."""
    networks = families(measurements)
    if not networks:
        return unmeasured(None, missing(networks))
    refused = {name for network in networks for name in refusals(measurements, network)}
    pairs = {name: _pairs(measurements, networks, name) for name in MIXED if name not in refused}
    gains = {name: gain for name, measured in pairs.items() if (gain := _pooled(measured))}
    if not gains:
        why = _why_none(measurements, networks, refused)
        return unmeasured(None, why) if why == TOO_FEW else choose(None, why, None, BENCH)
    name = "bfloat16" if "bfloat16" in gains else "float16"
    if "float16" in gains and gains["float16"].low > WORTH_A_SCALER * gains[name].high:
        name = "float16"
    what = f"training steps ({', '.join(networks)}) in {name} ran {range_text(gains[name])} as fast as without"
    if gains[name].verdict == "gain" and gains[name].ratio > WORTH_MIXED:
        return choose(name, what + but_for(losing(pairs[name])), gains[name], BENCH)
    return choose(None, f"{_not_worth(gains[name])}: {what}", gains[name], BENCH)


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    rows, chosen = allowed(measurements, family), first_best(measurements, family)
    if chosen is None:
        return None
    refused = "".join(f"; {name} refused: {why}" for name, why in refusals(measurements, family).items())
    candidates = [one for name in MIXED if (one := with_precision(chosen, name)) in rows]
    if not candidates:
        return choose(None, refused.removeprefix("; ") or NEITHER, None, BENCH)
    mixed = chosen if chosen in candidates else max(candidates, key=lambda one: rows[one].median)
    base = with_precision(chosen, base_precision(rows))
    comparison = compared(rows[mixed], rows.get(base))
    if comparison is None:
        return unmeasured(None, missing(rows.get(base), rows[mixed]))
    exact, dtype = "TF32" if base.level == "tf32" else "FP32", precision_of(mixed)
    what = f"its steps in {dtype} ran {range_text(comparison)} as fast as in {exact}"
    if mixed == chosen:
        scaler = ", with a GradScaler" if dtype == "float16" else ""
        reason = f"{what}{scaler}; {guard_words(measurements, family)}{refused}"
        return choose(dtype, reason, comparison, BENCH)
    return choose(None, f"{_not_worth(comparison)}: {what}{refused}", comparison, BENCH)


def gain_of(facts: Facts, measurements: Measurements, value: str, family: str) -> Comparison | None:
    networks = [family] if family else families(measurements)
    if any(value in refusals(measurements, network) for network in networks):
        return never()
    pairs = _pairs(measurements, networks, value)
    return _pooled(pairs) if pairs else None


def _not_worth(comparison: Comparison) -> str:
    return "not worth mixed precision" if comparison.verdict == "gain" else no_gain(comparison)


def _pairs(measurements: Measurements, networks: list[str], dtype: str) -> Pairs:
    pairs: dict[str, tuple[Measurement | None, Measurement | None]] = {}
    for network in networks:
        rows, chosen = allowed(measurements, network), first_best(measurements, network)
        if chosen is not None:
            base = with_precision(chosen, base_precision(rows))
            pairs[network] = (rows.get(with_precision(chosen, dtype)), rows.get(base))
    return {network: pair for network, pair in pairs.items() if None in pair or compared(*pair)}


def _pooled(pairs: Pairs) -> Comparison | None:
    complete = [(mixed, base) for mixed, base in pairs.values() if mixed and base]
    if len(complete) < len(pairs):
        return None
    return pooled([mixed for mixed, _ in complete], [base for _, base in complete])


def _why_none(measurements: Measurements, networks: list[str], refused: set[str]) -> str:
    if refused:
        return "the accuracy guard refused it"
    tried = {precision_of(one) for network in networks for one in allowed(measurements, network)}
    return TOO_FEW if tried & set(MIXED) else NEITHER
