"""The loading rows of sixteen standard probes on the 16 CPUs of two H200 machines, idle and with half of the CPUs busy,
beside sweeps of eight seconds for each number of workers: rows of four to eight short samples lead to the same number
of workers every time, and it is nearly the sweeps' best.
"""

import json

import pytest
from recorded import MACHINES, facts_of

from gputune.measurement import Measurement
from gputune.settings import dataloader_workers

PROBES: dict[str, dict[str, dict[str, list[float]]]] = json.loads(
    (MACHINES / "sixteen-cpus" / "loading.json").read_bytes()
)
SWEEPS = [
    ("first machine, idle", "decoding", {0: 749, 16: 3615, 24: 3510, 32: 3550}),
    ("first machine, busy", "decoding", {16: 2658, 24: 3530, 32: 3765}),
    ("first machine, idle", "waiting", {32: 11107, 64: 11697}),
    ("second machine, idle", "decoding", {0: 798, 16: 3692, 24: 3894, 32: 3943}),
    ("second machine, idle", "waiting", {32: 11960, 64: 11470}),
]
"""Samples per second by number of workers, on the machine of the probes so named."""
CHOSEN = {"memory": 0, "decoding": 32, "waiting": 64}


def rows(probe: str) -> list[Measurement]:
    return [
        Measurement(
            bench="dataloader",
            metric="throughput",
            unit="samples/s",
            samples=tuple(samples),
            params={"kind": kind, "workers": int(workers)},
            device="cuda:0",
        )
        for kind, curve in PROBES[probe].items()
        for workers, samples in curve.items()
    ]


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_chooses_the_same_workers(probe: str) -> None:
    measured = rows(probe)
    assert {kind: dataloader_workers.of_kind(measured, kind) for kind in CHOSEN} == CHOSEN
    assert dataloader_workers.recommend(facts_of("nvidia-h200-x1"), measured).value == CHOSEN["decoding"]


@pytest.mark.parametrize(("machine", "kind", "rates"), SWEEPS)
def test_which_come_within_95_percent_of_the_best_of_a_sweep(machine: str, kind: str, rates: dict[int, int]) -> None:
    chosen = {dataloader_workers.of_kind(rows(probe), kind) for probe in PROBES if probe.startswith(machine)}
    assert chosen
    assert all(rates[workers] >= 0.95 * max(rates.values()) for workers in chosen if workers is not None)
    assert None not in chosen
