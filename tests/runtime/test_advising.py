"""What of a profile is put into models under which terms: plain data in, plain data out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from making import H200, choices, profile, program, row

from gputune.live.models import ModelKey
from gputune.profile import Fingerprint, Guard, Profile, Program
from gputune.runtime.advising import advice, best, beyond, waiting
from gputune.runtime.deciding import Terms
from gputune.runtime.environment import plan

GENERAL = {"amp_dtype": "bfloat16", "channels_last": False, "compile": None, "fused_optimizer": True,
           "cudnn_benchmark": True, "dimension_multiple": {"bfloat16": 8}}  # fmt: skip
FAMILIES = {
    "convnet": {"amp_dtype": "bfloat16", "channels_last": True, "compile": True, "fused_optimizer": True},
    "recurrent": {"amp_dtype": None, "channels_last": False, "compile": False, "fused_optimizer": False},
    "memory": {"dataloader_workers": 0},
}
LOADING = {"dataloader_workers": 8, "dataloader_prefetch_factor": 4, "dataloader_pin_memory": True}
DEFAULT, INJECT, MIXED, EXACT = Terms(), Terms(inject=True), Terms(numerics="mixed"), Terms(numerics="exact")


def made(**more: Any) -> Profile:
    return profile(GENERAL | more.pop("settings", {}), families=FAMILIES, **more)


def tuning(*programs: Program) -> Profile:
    return made(settings={"cudnn_benchmark": False}, programs=programs)


class TestFamilies:
    @pytest.mark.parametrize("terms", [DEFAULT, EXACT, Terms(numerics="tf32"), Terms(numerics="rounding")])
    def test_nothing_by_itself(self, terms: Terms) -> None:
        assert not advice(made(), H200, terms)

    def test_all_of_it_at_the_level_mixed(self) -> None:
        given = advice(made(), H200, MIXED)
        assert given.general == {"amp_dtype": "bfloat16", "fused_optimizer": True}
        assert given.families == {
            "convnet": {"amp_dtype": "bfloat16", "channels_last": True, "compile": True, "fused_optimizer": True},
            "recurrent": {},
        }

    @pytest.mark.parametrize(
        ("level", "convnet"),
        [
            (None, {"channels_last": True, "compile": True, "fused_optimizer": True}),
            ("tf32", {"channels_last": True, "compile": True, "fused_optimizer": True}),
            ("rounding", {"channels_last": True, "compile": True, "fused_optimizer": True}),
            ("exact", {}),
        ],
    )
    def test_inject_puts_in_what_stays_within_the_level_which_is_tf32_unless_given(
        self, level: Any, convnet: dict[str, Any]
    ) -> None:
        assert advice(made(), H200, INJECT.but(numerics=level)).families["convnet"] == convnet

    def test_what_was_not_measured_for_a_kind_is_as_in_general_where_it_concerns_the_kind(self) -> None:
        general = {"amp_dtype": "bfloat16", "channels_last": True, "compile": True}
        own = {kind: {"compile": False} for kind in ("convnet", "transformer", "mlp", "recurrent")}
        families = advice(profile(general, families=own), H200, MIXED).families
        images = {"amp_dtype": "bfloat16", "channels_last": True}
        assert families["convnet"] == families["transformer"] == images
        assert families["mlp"] == families["recurrent"] == {"amp_dtype": "bfloat16"}

    def test_what_was_measured_elsewhere_stays_out(self) -> None:
        other_torch, other_gpu = replace(H200, torch="2.12.0"), replace(H200, gpu="another", compute_capability="8.0")
        assert advice(made(), other_torch, MIXED).general == {"amp_dtype": "bfloat16"}
        assert advice(made(), other_gpu, MIXED).general == {}
        assert advice(made(), other_gpu, MIXED.but(ignore_fingerprint=True)).general == {
            "amp_dtype": "bfloat16", "fused_optimizer": True,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("terms", "names"),
        [
            (MIXED.but(only=("compile", "amp_dtype")), {"compile", "amp_dtype"}),
            (MIXED.but(skip=("compile", "amp_dtype")), {"channels_last", "fused_optimizer"}),
            (MIXED.but(only=("compile", "amp_dtype"), skip=("compile",)), {"amp_dtype"}),
        ],
    )
    def test_only_and_skip_choose_among_it(self, terms: Terms, names: set[str]) -> None:
        assert set(advice(made(), H200, terms).families["convnet"]) == names

    def test_the_kind_of_device_and_quiet_travel(self) -> None:
        assert (advice(made(), H200, MIXED).device, advice(made(), H200, MIXED).quiet) == ("cuda", False)
        cpu = Fingerprint(cpu="AMD EPYC")
        given = advice(made(fingerprint=cpu), cpu, MIXED.but(quiet=True))
        assert (given.device, given.quiet) == ("cpu", True)


class TestWaiting:
    def test_it_is_what_the_level_mixed_would_put_in(self) -> None:
        assert waiting(made(), H200, DEFAULT) == {"convnet": advice(made(), H200, MIXED).families["convnet"]}

    @pytest.mark.parametrize("terms", [INJECT, MIXED, EXACT, Terms(numerics="tf32")])
    def test_nothing_waits_for_one_who_has(self, terms: Terms) -> None:
        assert waiting(made(), H200, terms) == {}

    def test_nor_does_what_does_not_hold_here(self) -> None:
        assert waiting(made(), Fingerprint(cpu="another"), DEFAULT) == {}


class TestPrograms:
    values = program().by_numerics["mixed"]

    def test_without_a_level_all_that_was_chosen(self) -> None:
        [tuned] = advice(tuning(program()), H200, DEFAULT).programs
        assert tuned.settings == self.values
        assert (tuned.entry, tuned.world_size) == ("train.py", 1)
        assert tuned.models == (("ResNet", "0123456789abcdef"),)
        assert tuned.shapes == ((64, 3, 224, 224), (64,))
        [answers] = advice(tuning(program(trains=False)), H200, DEFAULT).programs
        assert (tuned.trains, answers.trains) == (True, False)

    tried = (
        row("tune", "throughput", 1.0, matmul_precision="tf32"),
        row("tune", "throughput", 1.1, cudnn_benchmark=True),
    )
    flags: Mapping[str, Any] = {"cudnn_benchmark": True, "matmul_precision": "tf32"}

    def set_back(self, terms: Terms = DEFAULT, **changed: Any) -> Any:
        half = {"amp_dtype": "bfloat16"}
        given = {"settings": choices(half), "by_numerics": {"mixed": half}, "measurements": self.tried} | changed
        programs = advice(made(settings=self.flags, programs=(program(**given),)), H200, terms).programs
        return {name: value for one in programs for name, value in one.settings.items() if name in self.flags}

    def test_flags_that_every_program_gets_are_set_back_where_it_is_best_without(self) -> None:
        assert self.set_back() == {"cudnn_benchmark": False, "matmul_precision": "ieee"}
        both = {"amp_dtype": "bfloat16", "matmul_precision": "tf32"}
        found = self.set_back(settings=choices(both), by_numerics={"mixed": both})
        assert found == {"cudnn_benchmark": False, "matmul_precision": "tf32"}

    def test_and_where_the_guard_refused_what_is_faster(self) -> None:
        refused = Guard(verdict="refused", steps=100, reason="the gradient of parameter 3 vanishes")
        nothing: dict[str, Any] = {"settings": {}, "by_numerics": {}}
        assert self.set_back(guard=refused, **nothing) == {"cudnn_benchmark": False, "matmul_precision": "ieee"}
        assert self.set_back(**nothing) == {}

    @pytest.mark.parametrize(
        "terms",
        [Terms(only=("matmul_precision",)), Terms(numerics="tf32"), Terms(skip=("amp_dtype",)), EXACT],
        ids=["only", "a level below", "skip", "exact"],
    )
    def test_but_not_where_it_gets_less_than_was_tuned(self, terms: Terms) -> None:
        assert self.set_back(terms) == {}

    def test_nor_what_was_not_tried(self) -> None:
        assert self.set_back(measurements=self.tried[:1]) == {"matmul_precision": "ieee"}

    @pytest.mark.parametrize(
        ("level", "expected"),
        [
            (None, {"amp_dtype": "bfloat16", "matmul_precision": "tf32"}),
            ("mixed", {"amp_dtype": "bfloat16", "matmul_precision": "tf32"}),
            ("tf32", {"matmul_precision": "tf32"}),
            ("rounding", {}),
            ("exact", {}),
        ],
    )
    def test_within_a_level_the_best_that_was_measured_within_it(self, level: Any, expected: dict[str, Any]) -> None:
        assert best(program(), level) == expected
        programs = advice(tuning(program()), H200, Terms(numerics=level)).programs
        assert [tuned.settings for tuned in programs] == ([expected] if expected else [])

    @pytest.mark.parametrize(
        ("level", "left"),
        [(None, ()), ("mixed", ()), ("tf32", ("amp_dtype",)), ("exact", ("amp_dtype", "matmul_precision"))],
    )
    def test_what_a_level_leaves_out_is_known(self, level: Any, left: tuple[str, ...]) -> None:
        assert beyond(tuning(program()), H200, Terms(numerics=level)) == left

    def test_with_it_goes_what_was_only_measured_together(self) -> None:
        values = {"amp_dtype": "bfloat16", "fused_optimizer": True}
        one = program(settings=choices(values), by_numerics={"mixed": values})
        assert beyond(tuning(one), H200, Terms(numerics="tf32")) == ("amp_dtype", "fused_optimizer")

    def test_the_best_of_a_lower_level_where_the_level_itself_has_none(self) -> None:
        one = program(by_numerics={"rounding": {"fused_optimizer": True}, "mixed": self.values})
        assert best(one, "tf32") == {"fused_optimizer": True}
        assert best(one, "exact") == {}

    def test_the_newest_come_first(self) -> None:
        programs = tuple(program(f"{day}.py", created=f"2026-11-2{day}T12:00:00Z") for day in (2, 4, 3))
        entries = [tuned.entry for tuned in advice(tuning(*programs), H200, DEFAULT).programs]
        assert entries == ["4.py", "3.py", "2.py"]

    def test_what_must_be_exported_or_written_and_what_is_torchs_default_is_not_put_in(self) -> None:
        values = {"expandable_segments": True, "compile": False, "dimension_multiple": {"tf32": 4}}
        values |= {"channels_last": True, "omp_threads": 3}
        made_with = program(settings=profile(values).settings)
        [tuned] = advice(tuning(made_with), H200, DEFAULT).programs
        assert tuned.settings == {"channels_last": True, "omp_threads": 3}

    def test_each_rests_on_the_machine_that_it_was_tuned_on(self) -> None:
        elsewhere = program(fingerprint=replace(H200, gpu="another", compute_capability="8.0"))
        assert advice(tuning(elsewhere), H200, DEFAULT).programs == ()
        assert advice(tuning(elsewhere), H200, Terms(ignore_fingerprint=True)).programs

    def test_the_torch_that_it_was_tuned_with_goes_along_where_a_setting_depends_on_it(self) -> None:
        fused = program(settings=profile({"fused_optimizer": True}).settings)
        given = [advice(tuning(one), H200, DEFAULT).programs[0].torch for one in (fused, program())]
        assert given == [H200.torch, None]
        assert advice(tuning(fused), H200, Terms(ignore_fingerprint=True)).programs[0].torch is None

    def test_the_dataset_the_layers_and_the_profiles_name_go_along(self) -> None:
        model = ModelKey(class_name="Net", digest="0" * 16, layers={"12ab": 3})
        made = advice(tuning(program(models=(model,), dataset="Images")), H200, Terms(profile="mine.yaml"))
        assert made.profile == "mine.yaml"
        assert [(one.dataset, one.layers) for one in made.programs] == [("Images", ({"12ab": 3},))]

    def test_only_and_skip_hold_for_them_too(self) -> None:
        [tuned] = advice(tuning(program()), H200, Terms(skip=("amp_dtype",))).programs
        assert tuned.settings == {"matmul_precision": "tf32"}
        assert not advice(tuning(program()), H200, Terms(only=("compile",)))

    def test_their_dataloaders_have_choices_of_their_own(self) -> None:
        one = program(settings=profile(LOADING).settings, by_numerics={"exact": LOADING})
        [tuned] = advice(tuning(one), H200, DEFAULT).programs
        assert (tuned.settings, tuned.loading.choices if tuned.loading else None) == ({}, LOADING)
        assert tuned.loading is not None
        assert tuned.loading.measured == {"cpu_budget": 16, "own_dataset": True}
        assert not tuned.loading.deterministic
        [exact] = advice(tuning(one), H200, EXACT).programs
        assert exact.loading is not None
        assert exact.loading.deterministic


class TestLoading:
    @pytest.mark.parametrize("numerics", [None, "exact"])
    def test_dataloaders_of_any_program_only_where_asked_for(self, numerics: Any) -> None:
        one = made(settings=LOADING)
        assert advice(one, H200, MIXED).loading is None
        loading = advice(one, H200, Terms(inject_dataloader=True, numerics=numerics)).loading
        assert loading is not None
        assert (loading.choices, loading.measured["cpu_budget"]) == (LOADING, 16)
        assert loading.deterministic == (numerics == "exact")

    @pytest.mark.parametrize("values", [{"dataloader_workers": 0}, {"dataloader_prefetch_factor": 4}, {}])
    def test_without_workers_there_is_nothing_to_put_in(self, values: dict[str, Any]) -> None:
        assert not advice(made(settings=values), H200, Terms(inject_dataloader=True))


class TestPlan:
    def rows(self, terms: Terms, **more: Any) -> dict[str, tuple[str, Any]]:
        return {row.setting: (row.status, row.after) for row in plan(made(**more), H200, {}, terms).applied}

    def test_rows_of_what_is_put_in(self) -> None:
        rows = self.rows(MIXED)
        assert rows["amp_dtype"] == ("applied", "bfloat16")
        assert rows["channels_last"] == ("applied", True), "of a kind, although not in general"
        assert rows["dimension_multiple"][0] == "skipped"
        assert self.rows(DEFAULT)["amp_dtype"][0] == "skipped"

    def test_rows_of_what_dataloaders_get(self) -> None:
        terms = Terms(inject_dataloader=True)
        assert self.rows(terms, settings=LOADING)["dataloader_workers"] == ("applied", 8)
        whys = [row.why for row in plan(made(settings=LOADING), H200, {}, terms).applied]
        assert "put into each DataLoader that was given no workers" in whys

    def test_what_only_and_skip_leave_says_so(self) -> None:
        planned = plan(made(), H200, {}, Terms(only=("cudnn_benchmark",)))
        whys = {row.setting: row.why for row in planned.applied}
        assert whys["fused_optimizer"] == "not among the settings that were asked for"
        assert whys["cudnn_benchmark"] == "right after import torch"

    @pytest.mark.parametrize("terms", [MIXED, DEFAULT])
    def test_switched_off_nothing_is_handed_down(self, terms: Terms) -> None:
        planned = plan(made(programs=(program(),)), H200, {"GPUTUNE_DISABLE": "1"}, terms)
        assert (planned.payload, planned.waiting) == ("", {})
        assert not planned.advice
        assert {row.status for row in planned.applied} == {"skipped"}
