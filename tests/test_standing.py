"""What an earlier probe chose stands, unless a new one's rows contradict it with certainty."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import final_losses, precisions, row, steps, steps_with
from recorded import facts_of

from gputune.measurement import Measurement
from gputune.probing import recommending
from gputune.probing.standing import GENERAL, Incumbent
from gputune.profile import Profile, dump, parse

H200 = facts_of()
FIRST, SECOND = "2026-11-20T09:00:00Z", "2026-11-23T12:00:00Z"


def probed(rows: list[Measurement], before: Profile | None = None, created: str = FIRST) -> Profile:
    standing = recommending.standing_of(before, before.fingerprint) if before else recommending.NOTHING_STANDS
    return recommending.profile_of(H200, rows, "cuda:0", created=created, standing=standing)


def fused(ratio: float) -> list[Measurement]:
    apart = [100.0 * ratio * (1 + 0.06 * (number - 5.5) / 5.5) for number in range(12)]
    base = {"network": "convnet", "batch": 8, "precision": "tf32"}
    off = replace(row("training_step", "throughput", 100.0), samples=(100.0,) * 12)
    return [
        *(replace(off, params={**base, "stage": stage}) for stage in ("precision", "options")),
        replace(off, params={**base, "stage": "options", "fused": True}, samples=tuple(apart)),
    ]


def chosen(profile: Profile, name: str = "fused_optimizer", family: str = "convnet") -> Any:
    return (profile.families[family] if family else profile.settings)[name]


@pytest.mark.parametrize("ratio", [1.25, 1.02, 0.98])
def test_a_gain_stands_until_the_default_certainly_gains_over_it(ratio: float) -> None:
    first = probed(fused(1.2))
    assert (chosen(first).value, chosen(first).since) == (True, None)
    second = chosen(probed(fused(ratio), first, SECOND))
    assert (second.value, second.since) == (True, FIRST)
    assert second.reason.startswith("stands since 2026-11-20")


def test_what_certainly_lost_falls_and_the_new_choice_does_not_say_since() -> None:
    second = chosen(probed(fused(0.85), probed(fused(1.2)), SECOND))
    assert (second.value, second.since) == (False, None)
    assert second.reason.startswith("no gain: ")


@pytest.mark.parametrize(("ratio", "value"), [(1.04, False), (1.08, False), (1.2, True)])
def test_torchs_default_stands_until_another_value_certainly_gains_3_percent(ratio: float, value: bool) -> None:
    assert chosen(probed(fused(ratio), probed(fused(1.0)), SECOND)).value is value
    assert chosen(probed(fused(1.08))).value is True, "which alone would do"


def test_it_goes_on_standing_since_the_first_time() -> None:
    second = probed(fused(1.01), probed(fused(1.2)), SECOND)
    third = chosen(probed(fused(1.2), second, "2026-12-01T00:00:00Z"))
    assert (third.value, third.since) == (True, FIRST)
    assert third.reason.startswith("stands since 2026-11-20: its steps with the fused optimizer ran 1.2 times")


@pytest.mark.slow
@given(st.lists(st.floats(0.9, 1.3), min_size=2, max_size=6))
def test_no_sequence_of_probes_takes_a_choice_back_and_forth_without_certainty(ratios: list[float]) -> None:
    before: Profile | None = None
    for number, ratio in enumerate(ratios):
        profile = probed(fused(ratio), before, f"2026-11-{number + 1:02}T00:00:00Z")
        if before and chosen(before).value != chosen(profile).value:
            low, high = chosen(profile).interval
            assert low > 1.03 if chosen(profile).value else high < 1 / 1.03
        before = profile


def test_a_file_with_what_stood_follows_from_its_own_contents() -> None:
    made = probed(fused(1.01), probed(fused(1.2)), SECOND)
    read = parse(dump(made).encode())
    assert read == made
    standing = {
        family: {name: Incumbent(value=one.value, since=one.since) for name, one in group.items() if one.since}
        for family, group in {GENERAL: read.settings, **read.families}.items()
    }
    assert recommending.profile_of(H200, read.measurements, "cuda:0", created=SECOND, standing=standing) == made


def test_what_a_probe_did_not_measure_stands() -> None:
    first = probed(fused(1.2))
    second = probed([], first, SECOND)
    assert chosen(second).reason == "stands since 2026-11-20: not measured in this run's budget"
    assert chosen(second).value is True
    assert chosen(probed(fused(1.2), second, SECOND)).since == FIRST


def test_what_was_not_measured_or_is_provisional_does_not_stand() -> None:
    assert probed([], probed([])).settings["omp_threads"].since is None
    disturbed = [replace(one, conditions={"other_cpus": 64.0}) for one in threads(1.4)]
    first = probed(disturbed)
    assert first.settings["omp_threads"].provisional
    assert probed(threads(0.6), first, SECOND).settings["omp_threads"].since is None


def threads(one: float) -> list[Measurement]:
    return [
        row("cpu_threads", "throughput", rate, threads=count, default=count == 16)
        for count, rate in ((16, 1.0), (1, one))
    ]


def test_a_disturbed_run_leaves_what_stands() -> None:
    disturbed = [replace(one, conditions={"other_cpus": 64.0}) for one in threads(1.4)]
    choice = probed(disturbed, probed(threads(0.6)), SECOND).settings["omp_threads"]
    assert (choice.value, choice.provisional, choice.since) == (None, False, FIRST)


def loaded(kind: str = "decoding", **rates: float) -> list[Measurement]:
    return [
        row("dataloader", "throughput", rate, kind=kind, workers=int(name.removeprefix("w")))
        for name, rate in rates.items()
    ]


def test_of_many_values_the_new_one_must_certainly_gain_over_the_one_that_stands() -> None:
    first = probed(loaded(w0=100.0, w16=500.0, w32=380.0))
    assert chosen(first, "dataloader_workers", "").value == 16

    def second(**rates: float) -> Any:
        return chosen(probed(loaded(**rates), first, SECOND), "dataloader_workers", "").value

    assert second(w0=100.0, w16=500.0, w32=514.0) == 16
    assert second(w0=100.0, w16=500.0, w32=700.0) == 32
    assert second(w0=100.0, w32=700.0) == 16, "16 were not measured"
    assert second(w0=100.0, w16=50.0) == 0


def test_what_is_kept_has_its_own_gain() -> None:
    first = probed(loaded(w0=100.0, w16=500.0, w32=380.0))
    none, some, more = loaded(w0=100.0, w16=500.0, w32=540.0)
    more = replace(more, samples=tuple(540.0 * (0.92 + 0.16 * number / 11) for number in range(12)))
    alone = chosen(probed([none, some, more]), "dataloader_workers", "")
    assert (alone.value, alone.gain) == (32, pytest.approx(5.4, rel=0.01))
    kept = chosen(probed([none, some, more], first), "dataloader_workers", "")
    assert (kept.value, kept.gain) == (16, pytest.approx(5.0, rel=0.01))
    unknown = chosen(probed([none, more], first), "dataloader_workers", "")
    assert (unknown.value, unknown.gain, unknown.interval) == (16, None, None)


def test_a_users_own_dataset_comes_before_what_stands_of_synthetic_samples() -> None:
    first = probed([*loaded(w0=100.0, w16=500.0), *loaded("waiting", w0=100.0, w16=500.0)])
    own = [row("dataset", "throughput", 100.0, kind="dataset", workers=count, batch=8) for count in (0, 4)]
    second = probed(own, first, SECOND)
    assert chosen(second, "dataloader_workers", "").value == 0
    assert second.families == {}
    too_few = [replace(one, samples=one.samples[:3]) for one in own]
    assert chosen(probed(too_few, first, SECOND), "dataloader_workers", "").value == 0


def test_a_precision_that_the_accuracy_guard_refuses_falls() -> None:
    first = probed(precisions("mlp", tf32=100.0, bfloat16=190.0))
    assert chosen(first, "amp_dtype", "mlp").value == "bfloat16"
    diverged = row(
        "training_step", "final_loss", 9.0,
        network="mlp", precision="bfloat16", seed=0, steps=60, first_loss=2.0, diverged=True,
    )  # fmt: skip
    rows = [*precisions("mlp", tf32=100.0, bfloat16=190.0, float16=105.0), diverged]
    assert chosen(probed(rows, first, SECOND), "amp_dtype", "mlp").value is None
    too_few = [replace(one, samples=one.samples[:3]) for one in rows[:-1]]
    assert chosen(probed(too_few, first), "amp_dtype", "mlp").value == "bfloat16"
    assert chosen(probed([*too_few, diverged], first, SECOND), "amp_dtype", "mlp").value is None


def test_torchs_default_stands_beside_rows_that_are_too_few() -> None:
    rows = precisions("mlp", tf32=100.0, bfloat16=90.0)
    first = probed(rows)
    choice = chosen(probed([replace(one, samples=one.samples[:3]) for one in rows], first, SECOND), "amp_dtype", "mlp")
    assert (choice.value, choice.since) == (None, FIRST)


def test_mixed_precision_stands_though_it_gains_less_than_it_had_to() -> None:
    first = probed(precisions("mlp", tf32=100.0, bfloat16=115.0))
    assert chosen(probed(precisions("mlp", tf32=100.0, bfloat16=106.0), first), "amp_dtype", "mlp").value == "bfloat16"
    assert chosen(probed(precisions("mlp", tf32=100.0, bfloat16=90.0), first), "amp_dtype", "mlp").value is None
    slow, fast = precisions("mlp", tf32=100.0, bfloat16=90.0), precisions("mlp", tf32=100.0, bfloat16=115.0)
    assert chosen(probed(fast, probed(slow)), "amp_dtype", "mlp").value == "bfloat16"


def test_nothing_stands_on_another_machine_or_by_another_version() -> None:
    first = probed([*fused(1.2), *threads(0.6)])
    here = first.fingerprint
    assert {"omp_threads"} <= recommending.standing_of(first, here)[""].keys()
    for change in ({"torch": "2.12.0"}, {"cpu_budget": 4}, {"driver": "600.1"}):
        assert recommending.standing_of(first, replace(here, **change)) == {}
    assert recommending.standing_of(replace(first, gputune="0.2.0"), here) == {}


def searched(gain: float, memory: float) -> list[Measurement]:
    rates = {steps_with(cudnn_benchmark=True): 100.0 * gain, steps_with(): 100.0}
    peaks = [
        row("training_step", "peak_memory", mebibytes, network="convnet", stage="options", **searching)
        for mebibytes, searching in ((1000.0, {}), (1000.0 * memory, {"cudnn_benchmark": True}))
    ]
    return [*steps("convnet", rates, "options"), *steps("convnet", {steps_with(): 100.0}), *peaks]


def test_what_is_refused_for_another_reason_than_its_speed_falls_however_fast_it_is() -> None:
    first = probed(searched(1.3, memory=1.02))
    assert chosen(first, "cudnn_benchmark", "").value is True
    assert chosen(probed(searched(1.08, memory=1.02), first, SECOND), "cudnn_benchmark", "").value is True
    assert chosen(probed(searched(1.08, memory=3.0), first, SECOND), "cudnn_benchmark", "").value is False


def attention(*slower_at_128: str, **rates: float) -> list[Measurement]:
    return [
        row(
            "attention", "throughput", rate * (0.6 if backend in slower_at_128 and head == 128 else 1.0),
            dtype="bfloat16", head=head, length=4096, causal=True, backend=backend,
        )
        for backend, rate in rates.items()
        for head in (64, 128)
    ]  # fmt: skip


def test_a_back_end_falls_by_its_own_rows_and_not_by_those_of_a_rival() -> None:
    first = probed(attention(default=100.0, cudnn=150.0, flash=110.0))
    assert chosen(first, "sdpa_backend", "").value == "cudnn"

    def second(*slower: str, **rates: float) -> Any:
        return chosen(probed(attention(*slower, default=100.0, **rates), first, SECOND), "sdpa_backend", "").value

    assert second("cudnn", cudnn=150.0, flash=90.0) is None, "slower at one shape"
    assert second("flash", cudnn=120.0, flash=160.0) == "cudnn", "only the faster one is slower at a shape"


def compiled(convnet: float) -> list[Measurement]:
    pairs = {"mlp": 1.3, "convnet": convnet}
    return [
        one
        for network, gain in pairs.items()
        for one in (
            *steps(network, {steps_with(): 100.0}),
            *steps(network, {steps_with(): 100.0, steps_with(compile=True): 100.0 * gain}, "options"),
        )
    ]


def test_compiling_falls_where_it_slows_a_network_down() -> None:
    first = probed(compiled(convnet=1.2))
    assert chosen(first, "compile", "").value is True
    assert chosen(probed(compiled(convnet=0.9), first, SECOND), "compile", "").value is False


def test_what_a_quick_probe_has_only_hints_of_stands() -> None:
    first = probed(precisions("mlp", tf32=100.0, bfloat16=190.0))
    hints = [row("precision", "throughput", rate, dtype=dtype) for dtype, rate in (("bfloat16", 700), ("float32", 50))]
    choice = chosen(probed(hints, first, SECOND), "amp_dtype", "")
    assert (choice.value, choice.since) == ("bfloat16", FIRST)
    assert chosen(probed(hints), "amp_dtype", "").unmeasured


def test_what_the_machine_s_facts_decide_does_not_stand_against_them() -> None:
    first = probed(threads(0.6))
    limited = replace(H200, cpu=replace(H200.cpu, quota=4.0, quota_source="cgroup", budget=4))
    standing = recommending.standing_of(first, first.fingerprint)
    choice = recommending.choices(limited, [], standing)["omp_threads"]
    assert (choice.value, choice.since) == (4, None)


def aligned(dtype: str, multiple: int) -> list[Measurement]:
    return [
        row(
            "matmul_alignment", "throughput", 1000.0 * (1.0 if one >= multiple else 0.5),
            dtype=dtype, product="forward", dim="N", size=1024 + one, multiple=one,
        )
        for one in (1, 2, 4, 8, 16)
    ]  # fmt: skip


def test_another_multiple_of_one_dtype_and_a_newly_measured_dtype_are_seen_beside_another_dtypes_larger_gain() -> None:
    first = probed(aligned("bfloat16", 8))
    assert chosen(first, "dimension_multiple", "").value == {"bfloat16": 8}
    second = probed([*aligned("bfloat16", 8), *aligned("tf32", 4)], first, SECOND)
    assert chosen(second, "dimension_multiple", "").value == {"bfloat16": 8, "tf32": 4}
    third = probed([*aligned("bfloat16", 8), *aligned("tf32", 8)], second, SECOND)
    assert chosen(third, "dimension_multiple", "").value == {"bfloat16": 8, "tf32": 8}
    again = probed(aligned("bfloat16", 8), third, SECOND)
    assert chosen(again, "dimension_multiple", "").value == {"bfloat16": 8, "tf32": 8}, "of tf32 it says nothing"


def test_what_is_refused_falls_also_where_nothing_else_was_measured() -> None:
    first = probed(searched(1.5, memory=1.0))
    assert chosen(first, "cudnn_benchmark", "").value is True
    memory_alone = [one for one in searched(1.5, memory=3.0) if one.metric == "peak_memory"]
    assert chosen(probed(memory_alone, first, SECOND), "cudnn_benchmark", "").value is False
    assert chosen(probed(fused(1.2), first, SECOND), "cudnn_benchmark", "").value is True


def test_a_shipped_profile_is_fresh() -> None:
    from test_recommend import PROFILES

    from gputune.profile import load

    for path in PROFILES:
        profile = load(path)
        groups = (profile.settings, *profile.families.values())
        assert all(choice.since is None for group in groups for choice in group.values())


EVERYTHING = [
    *precisions("mlp", float32=50.0, tf32=100.0, bfloat16=190.0, float16=150.0),
    *loaded(w0=100.0, w16=500.0),
    *threads(0.6),
    *attention(default=100.0, cudnn=150.0, flash=110.0),
    *compiled(convnet=1.2),
    *searched(1.3, memory=1.02),
    *final_losses("mlp", 1.0, 1.1, 0.9, bfloat16=1.0),
]


@pytest.mark.parametrize("seed", range(20))
def test_any_part_of_what_was_measured_is_a_probe_after_any_other(seed: int) -> None:
    draw = random.Random(seed)

    def part() -> list[Measurement]:
        cut = [replace(one, samples=one.samples[: draw.choice([3, 12])]) for one in EVERYTHING]
        return [one for one in cut if draw.random() < 0.8]

    first = probed(part())
    second = probed(part(), first, SECOND)
    assert parse(dump(second).encode()) == second
    assert second.settings.keys() == first.settings.keys()


def stands(name: str, value: Any, family: str = "") -> Any:
    return {family: {name: Incumbent(value=value, since=FIRST)}}


def after(rows: list[Measurement], standing: Any) -> Profile:
    return recommending.profile_of(H200, rows, "cuda:0", created=SECOND, standing=standing)


def test_an_option_that_stands_turned_off_has_no_reason_for_turning_it_on() -> None:
    both = [*fused(1.0), *(replace(one, params={**one.params, "network": "transformer"}) for one in fused(1.4))]
    assert chosen(probed(both)).reason.startswith("on for all networks")
    choice = chosen(after(both, stands("fused_optimizer", False, "convnet")))
    assert choice.value is False
    assert choice.reason == (
        "stands since 2026-11-20: this run does not contradict it with certainty; on ran 1 times (0.951 to 1.05) as "
        "fast as off"
    )


def test_a_multiple_that_stands_has_its_own_gain_and_no_reason_for_any_size() -> None:
    free = [replace(one, samples=(1000.0 + number,) * 12) for number, one in enumerate(aligned("float32", 1))]
    free = [replace(one, samples=tuple(sample * one.params["size"] for sample in one.samples)) for one in free]  # type: ignore[operator]
    assert chosen(probed(free), "dimension_multiple", "").value == {"float32": 1}
    choice = chosen(after(free, stands("dimension_multiple", {"float32": 4})), "dimension_multiple", "")
    assert choice.value == {"float32": 4}
    assert choice.gain == pytest.approx(1.002)
    assert choice.reason == (
        "stands since 2026-11-20: this run does not contradict it with certainty; float32 4 ran up to 1 times (1 to 1) "
        "as fast as without"
    )


def test_multiples_that_stand_have_the_gain_of_the_dtype_that_gains_most_and_not_their_product() -> None:
    rows = [*aligned("bfloat16", 8), *aligned("tf32", 4)]
    standing = stands("dimension_multiple", {"bfloat16": 16, "tf32": 16})
    assert chosen(after(rows, standing), "dimension_multiple", "").gain == pytest.approx(2.0, rel=0.05)


def test_what_stands_and_gains_without_certainty_is_not_said_to_lack_a_gain() -> None:
    rows = fused(1.1)
    rows[-1] = replace(rows[-1], samples=tuple(100.0 * (1.3 if number % 2 else 0.9) for number in range(12)))
    assert chosen(probed(rows)).reason.startswith("no certain gain of 3 %: ")
    choice = chosen(after(rows, stands("fused_optimizer", True, "convnet")))
    assert (choice.value, choice.gain) == (True, pytest.approx(1.1))
    assert choice.reason == (
        "stands since 2026-11-20: this run does not contradict it with certainty; on ran 1.1 times (0.9 to 1.3) as "
        "fast as off"
    )


def test_a_disturbed_run_says_by_whom_beside_what_stands() -> None:
    disturbed = [replace(one, conditions={"other_cpus": 64.0}) for one in threads(1.4)]
    reason = probed(disturbed, probed(threads(0.6)), SECOND).settings["omp_threads"].reason
    assert reason.startswith(
        "stands since 2026-11-20: this run is not trusted, since others used 64 of 16 CPUs while cpu_threads measured; "
    )


def test_a_prefetch_factor_stands_with_its_number_of_workers() -> None:
    """It belongs to a dataset of the user's, whose batches fill /dev/shm, and that is not measured every time."""
    own = [
        row("dataset", "throughput", 100.0 * (1 + count), kind="dataset", workers=count, batch=8, **more)
        for count, more in ((0, {}), (4, {"prefetch_factor": 1}))
    ]
    first = probed(own)
    assert [chosen(first, f"dataloader_{name}", "").value for name in ("workers", "prefetch_factor")] == [4, 1]
    second = probed(fused(1.2), first, SECOND)
    assert [chosen(second, f"dataloader_{name}", "").value for name in ("workers", "prefetch_factor")] == [4, 1]
    other = after(loaded(w0=100.0, w4=120.0, w16=500.0), stands("dataloader_workers", 4))
    assert chosen(other, "dataloader_workers", "").value == 16
    assert chosen(other, "dataloader_prefetch_factor", "").reason.startswith("torch's own 2")
