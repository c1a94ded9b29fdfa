"""Which settings are candidates on a machine."""

from dataclasses import replace
from typing import Any

import pytest
from making import profile
from recorded import facts_of

from gputune.facts import Facts
from gputune.live.orders import LoaderDescribed
from gputune.trials.candidates import candidates, most_workers

TRIED = {
    "matmul_precision": "tf32", "amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True,
    "inference_mode": True, "cudnn_benchmark": True, "sdpa_backend": "flash", "compile": True, "dataloader_workers": 1,
}  # fmt: skip


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
        assert found.keys() & TRIED.keys() == names
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


LOADER: dict[str, Any] = {"batches": 1000, "batch_bytes": 0}


@pytest.mark.parametrize(
    ("changed", "ranks", "most"),
    [
        ({}, 1, 64),
        ({}, 4, 16),
        ({"batches": 3}, 1, 3),
        ({"batches": None}, 1, 64),
        ({"batch_bytes": 64 << 20}, 1, 6),
        ({"batch_bytes": 1 << 30}, 1, 0),
    ],
    ids=["by CPUs", "which ranks share", "by an epoch", "of no known length", "by shared memory", "which holds none"],
)
def test_the_most_workers(changed: dict[str, Any], ranks: int, most: int) -> None:
    facts = facts_of("cpu-only")
    cpu = replace(facts.cpu, budget=16, affinity_count=16, logical_count=16, quota=None)
    sixteen = replace(facts, cpu=cpu, memory=replace(facts.memory, shm_free_bytes=1 << 30))
    assert most_workers(sixteen, LoaderDescribed(**{**LOADER, **changed}), ranks) == most
