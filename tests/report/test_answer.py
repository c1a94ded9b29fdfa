"""What a profile's answer says is gained, how, and what comes next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from making import choices, profile, program, row, steps, steps_with

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.profile import Fingerprint, Guard, Profile
from gputune.report.answer import Answer, By, Gain, Reach, Step, answer_of
from gputune.report.answer_parts import gain_texts
from gputune.search.combination import Combination

TF32 = {"matmul_precision": "tf32"}
FIRST = {
    steps_with(): 100.0, steps_with("tf32"): 300.0, steps_with("bfloat16"): 600.0,
    steps_with("float16"): 800.0,
}  # fmt: skip


def options(precision: str) -> dict[Combination, float]:
    alone = steps_with(precision)
    fused = alone.plus("fused_optimizer", True)
    return {alone: 100.0, fused: 110.0, fused.plus("compile", True): 150.0}


def made(own: Mapping[str, Any], *rows: Any, general: Mapping[str, Any] = TF32, **more: Any) -> Profile:
    return profile(general, families={"transformer": own}, measurements=rows, **more)


def answer(found: Profile) -> Answer:
    return answer_of(found, "profile.yaml")


def gain(found: Profile) -> Gain:
    [one] = answer(found).gains
    return one


def said(found: Profile) -> list[tuple[Step, str]]:
    return [(one.step, " ".join(one.words)) for one in answer(found).next]


STEPS = (*steps("transformer", FIRST), *steps("transformer", options("bfloat16"), "options"))


class TestNetworks:
    def test_the_groups_are_multiplied_and_flags_alone_reach_a_part(self) -> None:
        one = gain(made({"amp_dtype": "bfloat16", "fused_optimizer": True, "compile": True}, *STEPS))
        assert one.by is By.MIXED
        assert one.times == pytest.approx(6.0 * 1.5)
        assert one.interval is not None
        assert one.interval[0] <= 9.0 <= one.interval[1]
        assert one.by_apply is not None
        assert (one.by_apply.times, one.by_apply.without) == (pytest.approx(3.0), ())

    def test_flags_are_all_that_is_recommended(self) -> None:
        one = gain(made({"amp_dtype": None}, *STEPS))
        assert (one.by, one.times) == (By.APPLY, pytest.approx(3.0))

    def test_float16_takes_lines_and_bfloat16_its_place_as_far_as_that_was_measured(self) -> None:
        rows = (*steps("transformer", FIRST), *steps("transformer", options("float16"), "options"))
        one = gain(made({"amp_dtype": "float16", "fused_optimizer": True, "compile": True}, *rows))
        assert (one.by, one.times) == (By.SCRIPT, pytest.approx(12.0))
        assert one.by_mixed == Reach(
            times=one.by_mixed.times if one.by_mixed else 0.0,
            interval=one.by_mixed.interval if one.by_mixed else (0.0, 0.0),
            without=("fused_optimizer", "compile"),
        )
        assert one.by_mixed.times == pytest.approx(6.0)

    def test_what_an_earlier_probe_chose_and_this_one_did_not_measure_has_no_figure(self) -> None:
        one = gain(made({"amp_dtype": "bfloat16", "compile": True}, *STEPS))
        assert (one.by, one.times) == (By.UNKNOWN, None)
        assert gain(made({"amp_dtype": "bfloat16"})).by is By.UNKNOWN

    def test_torchs_defaults_gain_nothing(self) -> None:
        assert gain(made({"amp_dtype": None}, *STEPS, general={"matmul_precision": "ieee"})).by is By.NONE

    def test_what_is_as_fast_gains_nothing(self) -> None:
        rows = steps("transformer", {steps_with(): 100.0, steps_with("tf32"): 101.0})
        assert gain(made({"amp_dtype": None}, *rows)).by is By.NONE

    def test_what_is_provisional_is_not_known(self) -> None:
        found = made({}, *STEPS, general={})
        waiting = Choice(value=None, reason="busy", provisional=True, evidence=("training_step",))
        assert gain(replace(found, families={"transformer": {"amp_dtype": waiting}})).by is By.PROVISIONAL

    def test_what_was_not_measured_is_not_said_to_gain_nothing(self) -> None:
        found = made({}, *STEPS, general={})
        untold = Choice(value=None, reason="too few samples", unmeasured=True)
        assert gain(replace(found, families={"transformer": {"amp_dtype": untold}})).by is By.UNMEASURED

    def test_parts_that_gain_and_are_not_certain_together_are_no_certain_gain(self) -> None:
        scattered = steps("transformer", {steps_with(): 100.0, steps_with("tf32"): 104.0})
        rows = [
            replace(one, samples=tuple(one.median * (0.8 if number % 2 else 1.25) for number in range(12)))
            if "matmul_precision" in one.params else one for one in scattered
        ]  # fmt: skip
        found = made({"amp_dtype": None}, *rows)
        assert gain(found).by is By.UNCERTAIN
        assert Step.TUNE_ANYWAY not in dict(said(found))

    def test_images_options_concern_networks_with_images_alone(self) -> None:
        one = gain(made({"amp_dtype": None}, *STEPS, general={**TF32, "channels_last": True, "cudnn_benchmark": True}))
        assert (one.by, one.times) == (By.APPLY, pytest.approx(3.0))


def test_workers_are_a_gain_and_none_are_none() -> None:
    workers = replace(choices({"dataloader_workers": 8})["dataloader_workers"], gain=5.0, interval=(4.0, 6.0))
    found = replace(
        profile({}, families={"memory": {"dataloader_workers": 0}}), settings={"dataloader_workers": workers}
    )
    some, none = answer(found).gains
    assert (some.name, some.by, some.times, some.workers) == ("decoding", By.LOADER, 5.0, 8)
    assert (none.name, none.by, none.times) == ("memory", By.NONE, None)


def test_workers_of_one_kind_of_samples_alone_are_no_matter_of_inject_dataloader() -> None:
    """It follows the general number of workers, which is none here."""
    found = profile({"dataloader_workers": 0}, families={"waiting": {"dataloader_workers": 8}})
    assert [one.by for one in answer(found).gains if one.name == "waiting"] == [By.LOADER_LINES]
    assert Step.LOADER not in dict(said(found))


def test_a_program_has_the_gain_of_its_settings_together() -> None:
    tuned = replace(choices({"compile": True})["compile"], gain=3.44, interval=(3.06, 3.46))
    best, none = program(settings={"compile": tuned}), program("other.py", settings={})
    first, second = answer(profile({}, programs=(best, none))).gains
    assert (first.name, first.by, first.times, first.interval) == ("train.py", By.PROGRAM, 3.44, (3.06, 3.46))
    assert (second.name, second.by) == ("other.py", By.NONE)


def compared(rates: Sequence[float], **values: Any) -> Measurement:
    return replace(row("tune", "throughput", 1.0, stage="final", **values), samples=tuple(rates))


OPEN = program(
    "open.py",
    settings={},
    measurements=(compared([10.0] * 12), compared([9.0, 14.0] * 6, fused_optimizer=True)),
)
REFUSED = program("refused.py", settings={}, refused=(Gap(fact="bfloat16", reason="its loss is no number"),))
PROBABLE = program(
    settings={
        name: replace(one, provisional=True, gain=1.9, interval=(1.2, 2.5))
        for name, one in choices({"fused_optimizer": True}).items()
    }
)


def test_a_program_of_which_its_tune_was_not_certain_is_said_to_be_so_and_is_tuned_again() -> None:
    found = answer(profile({}, programs=(OPEN,)))
    assert [one.by for one in found.gains] == [By.OPEN]
    assert list(gain_texts(found.gains)) == [
        "open.py: nothing is certain: fused_optimizer seemed 1.15 times as fast, in too few steps or beside too much "
        "else to tell; tune again on an idle machine, or with more --steps"
    ]
    assert found.next[0].step is Step.TUNE_AGAIN
    assert [" ".join(one.words) for one in found.next] == ["gputune tune -- python open.py"]
    elsewhere = answer_of(profile({}, programs=(OPEN,)), "node.yaml").next
    assert elsewhere[0].words == ("gputune", "tune", "-o", "node.yaml", "--", "python", "open.py")


def test_a_program_for_which_the_guard_refused_what_was_faster_is_said_to_be_so() -> None:
    found = answer(profile({}, programs=(REFUSED,)))
    assert list(gain_texts(found.gains)) == [
        "refused.py: nothing that was tried gains here: torch's defaults stay; what was faster, the guard refused"
    ]
    assert Step.TUNE_AGAIN not in [one.step for one in found.next]


def test_what_a_tune_measured_beside_others_holds_probably() -> None:
    found = answer(profile({}, programs=(PROBABLE,)))
    assert [one.by for one in found.gains] == [By.PROBABLY]
    assert list(gain_texts(found.gains)) == [
        "train.py: probably 1.9 times as fast (1.2 to 2.5); its loss was not compared"
    ]
    assert [(one.step, " ".join(one.words)) for one in found.next] == [
        (Step.PROGRAM, "gputune apply profile.yaml -- python train.py"),
        (Step.TUNE_AGAIN, "gputune tune -- python train.py"),
    ]


def test_what_could_not_be_compared_is_said() -> None:
    unknown = Guard(verdict="unknown", steps=0, reason="the time for the tune was over before")
    found = answer(profile({}, programs=(replace(PROBABLE, guard=unknown),)))
    assert list(gain_texts(found.gains)) == [
        "train.py: probably 1.9 times as fast (1.2 to 2.5); "
        "its loss could not be compared (the time for the tune was over before)"
    ]


def test_settings_are_sorted_by_gain_and_families_named_where_they_differ() -> None:
    found = profile(
        {"matmul_precision": "tf32", "amp_dtype": "bfloat16", "compile": False, "cudnn_tf32": True},
        families={"convnet": {"amp_dtype": "bfloat16", "compile": True}},
    )
    faster = replace(found.settings["matmul_precision"], gain=8.0)
    found = replace(found, settings={**found.settings, "matmul_precision": faster})
    assert [(one.name, one.family) for one in answer(found).chosen] == [
        ("matmul_precision", ""), ("amp_dtype", ""), ("compile", "convnet"),
    ]  # fmt: skip
    assert answer(found).at_default == ("cudnn_tf32",)


def test_dimensions_in_multiples_of_1_are_torchs_default() -> None:
    assert not answer(profile({"dimension_multiple": {"float32": 1}})).chosen
    assert answer(profile({"dimension_multiple": {"bfloat16": 8, "float32": 1}})).chosen


def test_benches_without_a_row_are_named_and_run_once_more() -> None:
    gaps = (
        Gap(fact="bench.conv", reason="killed"),
        Gap(fact="bench.training_step.transformer", reason="failed"),
        Gap(fact="bench.training_step.mlp", reason="in float16"),
        Gap(fact="cpu.quota", reason="unread"),
        Gap(fact="bench.nonsense", reason="of a later version"),
        Gap(fact="bench.attention", reason="not measured in this budget", cause="no_time"),
    )
    found = profile(TF32, measurements=tuple(steps("mlp", FIRST)), gaps=gaps)
    assert [gap.fact for gap in answer(found).without_result] == ["bench.conv", "bench.training_step.transformer"]
    assert (Step.RETRY, "gputune probe --only conv,training_step") in said(found)


class TestNext:
    def test_an_errors_remedy_comes_first_and_no_tune(self) -> None:
        found = profile(TF32, findings=(
            Finding(check="a", severity="WARNING", message="m", remedy="later"),
            Finding(check="b", severity="ERROR", message="m", remedy="mend it"),
        ))  # fmt: skip
        assert said(found) == [
            (Step.REPAIR, "mend it"), (Step.LOOK, "gputune check"),
            (Step.APPLY, "gputune apply profile.yaml -- python train.py"),
        ]  # fmt: skip

    def test_a_remedy_is_for_all_gpus_that_need_it(self) -> None:
        bad = [
            Finding(check="ecc_errors", severity="ERROR", message="bad", remedy=f"nvidia-smi -i {gpu} -r",
                    subject=f"GPU {gpu}")
            for gpu in range(3)
        ]  # fmt: skip
        assert said(profile(TF32, findings=tuple(bad)))[0] == (Step.REPAIR, "nvidia-smi -i 0,1,2 -r")

    def test_a_file_that_looks_like_an_option_is_named_as_a_file(self) -> None:
        [first, *_] = answer_of(profile(TF32), "-x.yaml").next
        assert " ".join(first.words) == "gputune apply ./-x.yaml -- python train.py"

    def test_all_gpus_are_measured_again_together(self) -> None:
        waiting = Choice(value=None, reason="busy", provisional=True, evidence=("precision",))
        rows = [row("side_by_side", "matmul", 1.0, f"cuda:{gpu}") for gpu in range(2)]
        found = replace(profile({}, measurements=tuple(rows)), settings={"omp_threads": waiting})
        assert said(found)[0] == (Step.AGAIN, "gputune probe --device all")

    def test_nothing_measured(self) -> None:
        none = {name: Choice(value=None, reason="", unmeasured=True) for name in ("amp_dtype", "omp_threads")}
        assert said(replace(profile({}), settings=none)) == [(Step.MEASURE, "gputune probe")]

    @pytest.mark.parametrize(
        ("found", "step", "words", "then"),
        [
            (profile({"amp_dtype": None}), Step.TUNE_ANYWAY, "tune", []),
            (made({"amp_dtype": None}, *STEPS), Step.APPLY, "apply profile.yaml", [Step.TUNE]),
            (made({"amp_dtype": "bfloat16"}, *STEPS), Step.MIXED, "apply --numerics mixed profile.yaml", [Step.TUNE]),
            (profile({"dataloader_workers": 4}), Step.LOADER, "apply --inject-dataloader profile.yaml", [Step.TUNE]),
        ],
        ids=["nothing to apply", "flags alone", "a network gains by mixed precision", "workers alone"],
    )
    def test_what_is_applied(self, found: Profile, step: Step, words: str, then: list[Step]) -> None:
        first, *others = said(found)
        assert first == (step, f"gputune {words} -- python train.py")
        assert [step for step, _ in others] == then

    @pytest.mark.parametrize(
        ("entry", "ranks", "start"),
        [
            ("mine.py", 1, "python mine.py"), ("package.train", 1, "python -m package.train"),
            ("train", 1, "python -m train"), ("-x.py", 1, "python ./-x.py"),
            ("mine.py", 8, "torchrun --nproc-per-node 8 mine.py"),
            ("package.train", 8, "torchrun --nproc-per-node 8 -m package.train"),
        ],
    )  # fmt: skip
    def test_a_tuned_program_as_it_is_started(self, entry: str, ranks: int, start: str) -> None:
        found = profile({}, programs=(program(entry, world_size=ranks),))
        assert said(found)[0] == (Step.PROGRAM, f"gputune apply profile.yaml -- {start}")

    def test_on_another_machine_it_is_measured_into_a_file_of_its_own_and_nothing_is_repaired(self) -> None:
        broken = Finding(check="ecc_errors", severity="ERROR", message="bad", remedy="mend it")
        found = replace(profile(TF32, findings=(broken,)), fingerprint=Fingerprint(gpu="NVIDIA H200", cpu="one"))
        for path, probe in (("profile.yaml", "gputune probe -o this-machine.yaml"), ("node.yaml", "gputune probe")):
            answer = answer_of(found, path, is_elsewhere=True)
            assert answer.elsewhere == "NVIDIA H200"
            assert [" ".join(one.words) for one in answer.next] == [
                probe, f"gputune apply {path} -- python train.py",
            ]  # fmt: skip

    def test_one_command_runs_each_of_two_programs_with_one_name(self) -> None:
        found = profile({}, programs=(program(), program(input_shapes=((1,),))))
        assert [step for step, _ in said(found)].count(Step.PROGRAM) == 1

    def test_what_is_provisional_is_measured_again_on_its_device(self) -> None:
        waiting = Choice(value=None, reason="busy", provisional=True, evidence=("cpu_threads",))
        rows = (row("cpu_threads", "throughput", 1.0, "cpu", threads=1),)
        found = replace(profile({}, measurements=rows), settings={"omp_threads": waiting})
        words = "gputune probe --only cpu_threads --device cpu -o node.yaml"
        assert [" ".join(one.words) for one in answer_of(found, "node.yaml").next] == [words]
        given = answer_of(found, "node.yaml", ("gputune", "probe", "--fresh"))
        assert given.next[0].words == ("gputune", "probe", "--fresh")
