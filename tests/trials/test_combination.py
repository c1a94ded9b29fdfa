"""Combinations, and which settings are candidates on a machine."""

from dataclasses import replace
from typing import Any

import pytest
from making import profile
from recorded import facts_of

from gputune.facts import Facts
from gputune.trials.candidates import TRIED, candidates
from gputune.trials.combination import DEFAULT, Combination

BOTH = Combination.of({"matmul_precision": "tf32", "fused_optimizer": True})


def test_the_level_is_the_largest_effect() -> None:
    assert (DEFAULT.level, BOTH.level) == ("exact", "tf32")
    assert BOTH.plus("amp_dtype", "bfloat16").level == "mixed"


def test_within_a_level() -> None:
    assert BOTH.within("rounding") == BOTH.minus("matmul_precision") == Combination.of({"fused_optimizer": True})
    assert BOTH.within("exact") == DEFAULT


def test_what_one_has_beyond_another() -> None:
    assert BOTH.beyond(Combination.of({"fused_optimizer": True})).values == {"matmul_precision": "tf32"}
    assert DEFAULT.beyond(BOTH) == DEFAULT


def test_in_words() -> None:
    assert (str(DEFAULT), str(BOTH)) == ("torch's defaults", "fused_optimizer + tf32")
    assert str(BOTH.plus("dataloader_workers", 8)) == "8 workers + fused_optimizer + tf32"


def test_workers() -> None:
    assert BOTH.workers is None
    assert BOTH.plus("dataloader_workers", 8).workers == 8
    assert BOTH.plus("dataloader_workers", 8).only("dataloader_workers").items == (("dataloader_workers", 8),)


class TestCandidates:
    ON_CPU = {"channels_last", "fused_optimizer", "compile", "dataloader_workers", "inference_mode"}

    @pytest.mark.parametrize(
        ("device", "more", "names"),
        [
            ("cuda", {}, set(TRIED)),
            ("cuda", {"level": "tf32"}, set(TRIED) - {"amp_dtype"}),
            ("cuda", {"level": "exact"}, {"dataloader_workers", "inference_mode"}),
            ("cuda", {"only": ("compile", "omp_threads")}, {"compile"}),
            ("cpu", {}, ON_CPU),
        ],
    )
    def test_by_device_level_and_the_users_words(self, device: str, more: dict[str, Any], names: set[str]) -> None:
        found = candidates(facts_of() if device == "cuda" else facts_of("cpu-only"), device, **more)
        assert found.keys() - {"omp_threads"} == names
        assert all(found[name] == TRIED[name] for name in names)

    @pytest.mark.parametrize(("own", "budget", "tried"), [(8, 8, 4), (8, 3, 3), (2, 2, 1), (1, 1, None)])
    def test_threads_on_a_cpu(self, own: int, budget: int, tried: int | None) -> None:
        assert candidates(self.cpu(own, budget), "cpu").get("omp_threads") == tried

    def test_threads_that_the_profile_chose(self) -> None:
        assert candidates(self.cpu(8, 8), "cpu", profile=profile({"omp_threads": 6}))["omp_threads"] == 6

    def test_threads_are_left_where_they_are_the_users_or_may_not_change(self) -> None:
        facts = self.cpu(8, 8)
        assert "omp_threads" not in candidates(facts, "cpu", level="exact")
        assert "omp_threads" not in candidates(facts, "cpu", only=("compile",))
        assert "omp_threads" not in candidates(replace(facts, environment={"OMP_NUM_THREADS": "8"}), "cpu")

    def cpu(self, own: int, budget: int) -> Facts:
        facts = facts_of("cpu-only")
        libraries = replace(facts.libraries, torch_threads=own)
        return replace(facts, environment={}, libraries=libraries, cpu=replace(facts.cpu, budget=budget))

    def test_on_a_cpu_with_it(self) -> None:
        facts = facts_of("cpu-only")
        facts = replace(facts, precision=replace(facts.precision, cpu_bfloat16=True))
        assert candidates(facts, "cpu")["amp_dtype"] == "bfloat16"

    def test_a_profile_leaves_out_what_it_refused_although_it_gains(self) -> None:
        made = profile({"matmul_precision": "ieee", "compile": False})
        gains = {name: replace(choice, gain=2.0, interval=(1.9, 2.1)) for name, choice in made.settings.items()}
        found = candidates(facts_of(), "cuda", profile=replace(made, settings=gains))
        assert "compile" not in found
        none = {name: replace(choice, gain=1.0, interval=(0.9, 1.1)) for name, choice in made.settings.items()}
        assert "compile" in candidates(facts_of(), "cuda", profile=replace(made, settings=none))

    def test_it_names_the_back_end_of_attention_to_try(self) -> None:
        made = profile({"sdpa_backend": "cudnn"})
        assert candidates(facts_of(), "cuda", profile=made)["sdpa_backend"] == "cudnn"
