"""Which result of a tune stands in a profile where there are several of one program."""

from dataclasses import replace

import pytest
from making import H200, choices, profile, program, row

from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.profile import Program
from gputune.report.standing import elsewhere, with_tuned

EARLY, LATE = "2026-11-21T12:00:00Z", "2026-11-22T12:00:00Z"
FUSED = {"fused_optimizer": True}


def final(*rates: float, **values: object) -> Measurement:
    return replace(row("tune", "throughput", 1.0, stage="final", **values), samples=rates)


DEFAULTS = final(*[10.0] * 12)
QUICK, SAME, OPEN = (final(*rates, **FUSED) for rates in ([18.0] * 12, [10.1] * 12, [9.0, 14.0] * 6))
LAST = final(*[10.1] * 12, channels_last=True)


def result(
    *rows: Measurement, provisional: bool = False, chosen: dict[str, object] | None = None, **more: object
) -> Program:
    settings = {name: replace(one, provisional=provisional) for name, one in choices(chosen or {}).items()}
    return program(settings=settings, by_numerics={}, measurements=rows, **{"created": LATE, **more})


GAINED = result(DEFAULTS, QUICK, chosen=FUSED, created=EARLY)
NO_GAIN = result(DEFAULTS, SAME, created=EARLY)
FAILED = Gap(fact="fused_optimizer", reason="its step failed", cause="exited")
LEFT_OPEN = {
    "nothing certain": result(DEFAULTS, OPEN),
    "a gain beside others": result(DEFAULTS, QUICK, provisional=True, chosen=FUSED),
}
WITHOUT_IT = {
    "another setting": result(DEFAULTS, LAST), "nothing": result(),
    "nothing, since it was left": result(gaps=(replace(FAILED, cause=None),)),
}  # fmt: skip
TELLS = {
    "no gain of it": result(DEFAULTS, SAME),
    "that it fails": result(DEFAULTS, gaps=(FAILED,)),
    "a gain of another": result(DEFAULTS, final(*[18.0] * 12, channels_last=True), chosen={"channels_last": True}),
}


def stands(before: Program, now: Program) -> bool:
    [found] = with_tuned(profile(programs=(before,)), now).programs
    return found is before


@pytest.mark.parametrize("now", LEFT_OPEN.values(), ids=LEFT_OPEN)
@pytest.mark.parametrize("before", [GAINED, NO_GAIN])
def test_what_is_certain_stands_against_what_is_not(before: Program, now: Program) -> None:
    assert stands(before, now)
    assert not stands(replace(now, created=EARLY), now)


@pytest.mark.parametrize("now", WITHOUT_IT.values(), ids=WITHOUT_IT)
def test_a_gain_stands_against_a_tune_that_did_not_try_it(now: Program) -> None:
    assert stands(GAINED, now)
    assert not stands(NO_GAIN, now)


@pytest.mark.parametrize("now", TELLS.values(), ids=TELLS)
def test_but_not_against_one_that_tells(now: Program) -> None:
    assert not stands(GAINED, now)


def test_nothing_stands_against_another_program_or_torch() -> None:
    now = LEFT_OPEN["nothing certain"]
    for other in (replace(GAINED, entry="other.py"), replace(GAINED, world_size=2)):
        assert with_tuned(profile(programs=(other,)), now).programs == (now, other)
    assert not stands(replace(GAINED, fingerprint=replace(H200, torch="2.0")), now)
    assert stands(replace(GAINED, fingerprint=replace(H200, cpu_budget=1)), now)


def test_of_several_profiles_programs_the_order_of_files_does_not_matter() -> None:
    now = LEFT_OPEN["nothing certain"]
    for programs in ((GAINED, now), (now, GAINED)):
        assert with_tuned(profile(), *programs).programs == (GAINED,)


def test_a_result_of_another_device_is_told() -> None:
    there = replace(GAINED, fingerprint=replace(H200, gpu="NVIDIA A100-SXM4-80GB"))
    assert elsewhere(profile(programs=(there,)), GAINED) == "NVIDIA A100-SXM4-80GB"
    for programs in ((GAINED,), (replace(there, entry="other.py"),), ()):
        assert elsewhere(profile(programs=programs), GAINED) is None
