"""What was measured on a busy machine is not believed: the setting keeps what it has unmeasured, and says why."""

from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.advice import Choice
from gputune.facts import Facts
from gputune.probing import recommending
from gputune.probing.standing import disturbance

TWO = facts_of("cpu-only", affinity=range(2))
SIXTEEN = facts_of("nvidia-h200-x1", affinity=range(16))


def beside(rows: list[Any], **conditions: float) -> list[Any]:
    first, *others = rows
    return [replace(first, conditions=conditions), *others]


def loaded(device: str = "cpu", **rates: float) -> list[Any]:
    return [
        row("dataloader", "throughput", rate, device=device, kind="decoding", workers=int(name[1:]))
        for name, rate in rates.items()
    ]


def attention(**conditions: float) -> list[Any]:
    return beside([row("attention", "throughput", 1.0)], **conditions)


@pytest.mark.parametrize(
    ("facts", "rows", "said"),
    [
        (TWO, beside(loaded(w0=1.0), other_cpus=0.05), None),
        (TWO, beside(loaded(w0=1.0), other_cpus=1.05), "others used 1.1 of 2 CPUs"),
        (
            TWO,
            beside(loaded(w0=1.0), other_cpus=1.5, stolen_cpus=0.4),
            "others used 1.5 of 2 CPUs, 0.4 of them on other guests of the host",
        ),
        (SIXTEEN, beside(loaded("cuda:0", w0=1.0), other_cpus=8.0), "others used 8 of 16 CPUs"),
        (SIXTEEN, attention(other_cpus=8.0), None),
        (SIXTEEN, attention(other_cpus=15.5), "others used 16 of 16 CPUs"),
        (SIXTEEN, attention(other_sm_percent=4.0), None),
        (SIXTEEN, attention(other_sm_percent=40.0), "another process used 40 % of the GPU"),
        (SIXTEEN, attention(throttle_reasons=4.0), None),
        (SIXTEEN, attention(throttle_reasons=68.0), "the GPU was slowed down by hardware thermal slowdown"),
        (SIXTEEN, attention(), None),
    ],
    ids=[
        "idle", "a busy loop", "stolen", "of the host", "a GPU needs two", "and has half of one", "little of the GPU",
        "much of it", "its power limit", "heat", "unknown",
    ],
)  # fmt: skip
def test_a_bench_is_disturbed_where_others_leave_it_less_than_it_needs(
    facts: Facts, rows: list[Any], said: str | None
) -> None:
    assert disturbance(facts, rows, rows[0].bench) == said


def test_what_others_use_of_cpus_beyond_a_quota_is_not_ours() -> None:
    facts = replace(SIXTEEN, cpu=replace(SIXTEEN.cpu, budget=2))
    assert disturbance(facts, beside(loaded(w0=1.0), other_cpus=8.0), "dataloader") is None


def test_what_others_do_does_not_change_what_something_else_than_speed_decides() -> None:
    rows = [row("dataset", "throughput", 100.0, device="cpu", kind="dataset", workers=4, batch=8)]
    choice = recommending.choices(TWO, beside(rows, other_cpus=1.5))["dataloader_workers"]
    assert (choice.value, choice.provisional) == (4, False)


def chosen(name: str, facts: Facts, rows: list[Any]) -> Choice:
    return recommending.choices(facts, rows)[name]


def test_a_choice_from_a_disturbed_bench_keeps_the_default_and_is_provisional() -> None:
    choice = chosen("dataloader_workers", TWO, beside(loaded(w0=100.0, w2=150.0), other_cpus=1.05))
    assert (choice.value, choice.provisional, choice.evidence) == (0, True, ("dataloader",))
    assert choice.gain == pytest.approx(1.5)
    assert choice.reason.startswith("not trusted, since others used 1.1 of 2 CPUs while dataloader measured: samples")
    quiet = chosen("dataloader_workers", TWO, beside(loaded(w0=100.0, w2=150.0), other_cpus=0.05))
    assert (quiet.value, quiet.provisional) == (2, False)


def test_so_is_a_default_that_a_disturbed_bench_speaks_for() -> None:
    choice = chosen("dataloader_workers", TWO, beside(loaded(w0=100.0, w2=70.0), other_cpus=1.05))
    assert (choice.value, choice.provisional) == (0, True)


@pytest.mark.parametrize(
    ("facts", "others", "rates", "value"),
    [
        (SIXTEEN, 8.0, {"w16": 2600.0}, 16),
        (SIXTEEN, 8.0, {"w16": 2300.0}, 0),
        (SIXTEEN, 14.0, {"w16": 4562.0}, 0),
        (SIXTEEN, 16.0, {"w16": 9000.0}, 0),
        (TWO, 0.3, {"w2": 2300.0}, 0),
        (TWO, 0.3, {"w2": 2450.0}, 2),
        (TWO, 1.05, {"w2": 2500.0}, 0),
    ],
)
def test_of_workers_a_gain_is_believed_that_no_larger_share_of_the_cpus_explains(
    facts: Facts, others: float, rates: dict[str, float], value: int
) -> None:
    choice = chosen("dataloader_workers", facts, beside(loaded("cuda:0", w0=1000.0, **rates), other_cpus=others))
    assert (choice.value, choice.provisional) == (value, not value)


@pytest.mark.parametrize(("scatter", "value"), [(0.3, 16), (0.45, 0)])
def test_which_is_its_gain_while_the_interval_is_to_lie_beyond_twice(scatter: float, value: int) -> None:
    none, some = loaded("cuda:0", w0=1000.0, w16=2900.0)
    spread = [1 + scatter * (2 * number / 11 - 1) for number in range(12)]
    some = replace(some, samples=tuple(2900.0 * factor for factor in spread))
    choice = chosen("dataloader_workers", SIXTEEN, beside([none, some], other_cpus=7.5))
    assert choice.interval is not None
    assert choice.interval[0] < 2.35, "a larger share of the CPUs would explain 1.25 / (8.5 / 16)"
    assert (choice.value, choice.provisional) == (value, not value)


def test_what_lies_far_apart_is_believed_of_a_gpu_and_never_of_threads() -> None:
    rows = [row("precision", "throughput", rate, dtype=dtype) for dtype, rate in (("float32", 40.0), ("tf32", 320.0))]
    rows = [*beside(rows, other_sm_percent=40.0), row("precision", "relative_error", 3e-4, dtype="tf32")]
    on_gpu = chosen("matmul_precision", SIXTEEN, rows)
    assert (on_gpu.value, on_gpu.provisional) == ("tf32", False)
    threads = [row("cpu_threads", "throughput", rate, threads=n, default=n == 2) for n, rate in ((2, 1.0), (1, 6.0))]
    choice = chosen("omp_threads", TWO, beside(threads, other_cpus=1.0))
    assert (choice.value, choice.provisional) == (None, True)


def test_choices_of_families_are_held_to_the_same() -> None:
    rows = [
        row("dataloader", "throughput", rate, device="cpu", kind="waiting", workers=count)
        for count, rate in ((0, 100.0), (8, 150.0))
    ]
    [(_, choice)] = recommending.families(TWO, beside(rows, other_cpus=1.0))["waiting"].items()
    assert (choice.value, choice.provisional) == (0, True)
