"""A measurement: raw samples, their interval, and the comparison of two measurements.

**The rule for deciding between two settings.** They are measured in turn (A B B A ...) and compared by the median of
the paired ratios with its exact order-statistic (sign test) interval at 99 %: no distribution is assumed and no
random number is drawn. The pairs are looked at when there are 12, 20 and 32 of them, and in the comparison that a whole
tune ends with at 64 and 128.

**What lies far apart** is decided by fewer pairs, or by pairs of which some were disturbed, where the interval says
nothing: when more of them are twice apart in one direction than noise can explain. Noise makes at most a quarter of
the pairs of two equal settings so (a machine that stands still at every second moment does), hence four pairs that
all are, eight but for two, or twelve but for four.

With all looks, one of two equal settings is said to gain in 0.03 % of comparisons whose samples scatter by 2 %, and in
0.85 % at most on the noisiest machines that were simulated: CPUs of two speeds, stolen CPUs, blocks that may run at a
tenth of their speed (`tests/noise.py`); with those of a tune, in 1.6 % at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

CONFIDENCE = 0.99
LOOKS = (12, 20, 32)
"""After how many pairs a comparison may end."""
MORE_LOOKS = (64, 128)
"""After how many pairs more a comparison may end on which a whole result rests: beside a busy host 32 pairs miss a gain
of 8 %. 128 is also the most samples that a row keeps."""
FEWEST_PAIRS = 8
"""With fewer pairs not even the extremes enclose the median at 99 %."""
BY_FAR = 2.0
"""The ratio from which two settings lie far apart."""
FAR_BY_CHANCE = 0.25
"""The share of pairs that noise alone puts `BY_FAR` apart in one direction, at most."""
LEAST_GAIN = 1.03
"""A change is worth recommending only above this ratio: smaller gains drown in the difference between two jobs."""
SIGNIFICANT_DIGITS = 4
"""Samples are kept to this many digits; with three, rounding alone would move a 3 % gain by a third."""

Verdict = Literal["gain", "no gain", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How much better one setting is than another: a ratio of rates, above 1 where it is better."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> Verdict:
        if self.low > 1 and self.ratio > LEAST_GAIN:
            return "gain"
        return "no gain" if self.high < LEAST_GAIN else "undecided"

    @property
    def interval(self) -> tuple[float, float]:
        return (self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Samples of one metric under one set of parameters, in the order they were taken.

    Two measurements of one bench whose samples were taken in turn are compared sample by sample: see `against`.
    """

    bench: str
    metric: str
    unit: str
    samples: tuple[float, ...]
    params: dict[str, str | int | float | bool] = field(default_factory=dict)
    device: str
    conditions: dict[str, float] = field(default_factory=dict)
    """The GPU's state meanwhile: sm_clock_mhz, power_watts (medians), throttle_reasons (NVML's bits, all that
    occurred), and in a bench's first row, over the whole bench, pcie_generation and other_sm_percent (the highest;
    the SMs that other processes used), gpu_processes (compute processes, most of the time), other_cpus (how many CPUs
    others used) and stolen_cpus (how many of these other guests of the host did)."""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a measurement has at least one sample")
        if not all(map(math.isfinite, self.samples)):
            raise ValueError("a measurement's samples are finite")

    @property
    def median(self) -> float:
        return _median(self.samples)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The median's interval at 99 %; None where there are too few samples (fewer than 8) to have one."""
        return median_interval(self.samples)

    def against(self, baseline: Measurement) -> Comparison | None:
        """The comparison with `baseline`, taken in turn; higher is better. None for under 8 pairs (4 far apart)."""
        return comparison_of(self.ratios(baseline))

    def ratios(self, baseline: Measurement) -> list[float]:
        """The paired ratios. Pairs with a zero in them cannot be compared and are left out."""
        pairs = zip(self.samples, baseline.samples, strict=False)
        return [new / old for new, old in pairs if old > 0 and new > 0]

    def pooled(self, baseline: Measurement, more: Sequence[tuple[Measurement, Measurement]]) -> Comparison | None:
        """One comparison over several workloads of the same rounds: the geometric mean of each round's ratios."""
        from statistics import geometric_mean

        rounds = zip(self.ratios(baseline), *(new.ratios(old) for new, old in more), strict=False)
        return comparison_of([geometric_mean(ratios) for ratios in rounds])


def rounded(value: float) -> float:
    """The value to `SIGNIFICANT_DIGITS`, as samples are kept, so that advice can be derived again from a file."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _median(values: Sequence[float]) -> float:
    from statistics import median  # slow to import, and to read a profile takes none

    return median(values)


def comparison_of(ratios: Sequence[float]) -> Comparison | None:
    """The comparison that paired ratios allow; None where they are too few."""
    interval = median_interval(ratios)
    if interval is None or interval[0] <= 1 <= interval[1]:
        interval = _far_apart(ratios) or interval
    if interval is None:
        return None
    return Comparison(
        ratio=rounded(_median(ratios)), low=rounded(interval[0]), high=rounded(interval[1]), pairs=len(ratios)
    )


def _far_apart(ratios: Sequence[float]) -> tuple[float, float] | None:
    """The range of the ratios that count, where these lie `BY_FAR` apart in one direction; None where they do not. At
    either end as many do not count as chance allows: P(Binomial(n, FAR_BY_CHANCE) >= n - left out) <= 0.005.
    """
    n, ordered = len(ratios), sorted(ratios)
    left_out, chance = -1, 0.0
    while left_out < n // 3:
        far = n - left_out - 1
        chance += math.comb(n, far) * FAR_BY_CHANCE**far * (1 - FAR_BY_CHANCE) ** (n - far)
        if chance > (1 - CONFIDENCE) / 2:
            break
        left_out += 1
    if left_out < 0:
        return None
    low, high = ordered[left_out], ordered[n - 1 - left_out]
    return (low, high) if low >= BY_FAR or high <= 1 / BY_FAR else None


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The exact interval of the median; None where even the extremes do not reach `confidence`. The k-th smallest and
    largest of n samples miss it with probability 2 * P(Binomial(n, 1/2) < k).
    """
    n = len(samples)
    outside, k = 0.0, 0
    while k < n // 2:
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 1 - confidence:
            break
        k += 1
    if k == 0:
        return None
    ordered = sorted(samples)
    return ordered[k - 1], ordered[n - k]
