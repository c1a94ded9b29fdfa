"""Applying a profile in a running process, and what a training script takes from it."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_child
from making import CHOSEN, ELSEWHERE, gputune, profile, written
from torch import nn

from gputune import knobs
from gputune.errors import ProfileError
from gputune.host import Host
from gputune.profile import Profile
from gputune.resources.room import Room
from gputune.runtime import tuning as tuning_module
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.tuning import Tuning, apply

CODE = {name: value for name, value in CHOSEN.items() if knobs.load(name).PHASE == "code"}


def measured_here(values: dict[str, Any], **more: Any) -> Profile:
    return profile(values, fingerprint=local_fingerprint(Host()), **more)


def mixed(tuning: Tuning) -> bool:
    with tuning.autocast():
        return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype != torch.float32


def status(tuning: Tuning) -> dict[str, str]:
    return {row.setting: row.status for row in tuning.applied}


@pytest.fixture(autouse=True)
def _nothing_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "GPUTUNE_DISABLE", "NVIDIA_TF32_OVERRIDE"):
        monkeypatch.delenv(name, raising=False)


class TestApply:
    """What touches torch's flags runs in children, which have a fresh torch."""

    @pytest.mark.slow
    def test_flags_and_threads_are_set_and_read_back(self, tmp_path: Path) -> None:
        values = {"cudnn_benchmark": True, "matmul_precision": "tf32", "omp_threads": 1}
        path = written(tmp_path, measured_here(values))
        rows, now = torch_child.ask(f"""
from dataclasses import asdict
from gputune.runtime.tuning import apply
rows = [row.plain for row in apply({path!r}).applied]
answer = rows, [torch.backends.cudnn.benchmark, torch.get_float32_matmul_precision(), torch.get_num_threads()]
""")
        assert now == [True, "high", 1]
        assert [(row["setting"], row["after"], row["status"]) for row in rows] == [
            ("cudnn_benchmark", True, "applied"), ("matmul_precision", "tf32", "applied"),
            ("omp_threads", 1, "applied"),
        ]  # fmt: skip
        assert rows[0]["before"] is False
        assert rows[0]["why"] == "in this process"
        assert rows[2]["why"] in ("in this process, too late for its environment variable", "already had this value")

    @pytest.mark.slow
    def test_what_the_user_set_stays(self, tmp_path: Path) -> None:
        """Deterministic mode excludes cuDNN's search, although that flag itself is at its default."""
        values = {"cudnn_benchmark": True, "cudnn_tf32": True, "matmul_precision": "ieee", "omp_threads": 1}
        path = written(tmp_path, measured_here(values))
        before, rows, after = torch_child.ask(f"""
import os
from gputune import knobs
from gputune.runtime.tuning import apply
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.allow_tf32 = False
torch.set_float32_matmul_precision("high")
os.environ["OMP_NUM_THREADS"] = "7"
current = lambda: [knobs.load(name).current() for name in {list(values)!r}]
answer = current(), [row.plain for row in apply({path!r}).applied], current()
""")
        assert after == before
        assert {row["status"] for row in rows} == {"kept-user"}
        said = [row["reasons"][0]["arguments"][0] for row in rows]
        assert "deterministic" in said[0], said
        assert all("had already set" in words for words in said[1:3]), said
        assert said[3] == "already exported: OMP_NUM_THREADS=7", said

    @pytest.mark.slow
    def test_an_earlier_apply_is_not_the_user_but_what_was_changed_since_is(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        on = written(tmp_path / "a", measured_here({"matmul_precision": "tf32", "cudnn_benchmark": True}))
        off = written(tmp_path, measured_here({"matmul_precision": "ieee", "cudnn_benchmark": True}))
        answer = torch_child.ask(f"""
from gputune.runtime.tuning import apply
apply({on!r})
torch.backends.cudnn.benchmark = False
rows = apply({off!r}).applied
answer = [row.status for row in rows], torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
""")
        assert answer == [["applied", "kept-user"], "highest", False]

    @pytest.mark.slow
    def test_below_gputune_apply_the_hooks_work_is_not_the_users(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        on = written(tmp_path / "a", measured_here({"matmul_precision": "tf32", "omp_threads": 1}))
        off = written(tmp_path, measured_here({"matmul_precision": "ieee", "omp_threads": 1}))
        code = f"""
import json, sys, torch
from gputune.runtime.tuning import apply
level = torch.get_float32_matmul_precision()
rows = [[row.before, row.after, row.status] for row in apply({off!r}).applied]
print(json.dumps([level, rows, len(sys.modules["_gputune.live.flags"].rows)]))
"""
        done = gputune("apply", on, "--", sys.executable, "-c", code)
        assert done.stderr == ""
        assert json.loads(done.stdout) == ["high", [["tf32", "ieee", "applied"], [1, 1, "applied"]], 2]

    def test_measured_elsewhere_nothing_holds_here(self) -> None:
        tuning = apply(profile(fingerprint=ELSEWHERE))
        assert set(status(tuning).values()) == {"skipped"}
        assert "device (NVIDIA A100-SXM4-80GB there" in next(
            row.why for row in tuning.applied if row.setting == "amp_dtype"
        )
        assert tuning.dataloader_kwargs() == {"num_workers": 0, "pin_memory": False}
        assert tuning.pad(13) == 13
        assert not mixed(tuning)

    def test_as_the_last_line_of_a_notebook_it_shows_what_became_of_each_setting(self) -> None:
        tuning = apply(measured_here({"amp_dtype": "bfloat16", "dataloader_workers": 2}))
        tuning.prepare(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))
        first, *rows = repr(tuning).splitlines()
        assert first == "Tuning, family mlp"
        assert rows == repr(tuning.applied).splitlines()
        assert any("amp_dtype" in row for row in rows)

    def test_ignore_fingerprint_applies_it_all_the_same(self) -> None:
        here = local_fingerprint(Host()).cpu_budget
        tuning = apply(profile(CODE, fingerprint=replace(ELSEWHERE, cpu_budget=here)), ignore_fingerprint=True)
        assert tuning.dataloader_kwargs()["num_workers"] == 8
        assert tuning.pad(13) == 16

    def test_what_does_not_rest_on_the_difference_holds(self) -> None:
        here = local_fingerprint(Host())
        tuning = apply(profile(CODE, fingerprint=replace(here, torch="1.13.1", cpu_budget=(here.cpu_budget or 0) + 1)))
        assert tuning.optimizer_kwargs() == {}
        assert tuning.dataloader_kwargs()["num_workers"] > 0
        assert tuning.pad(13) == 16

    def test_gputune_disable_leaves_everything_even_a_broken_profile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GPUTUNE_DISABLE", "1")
        tuning = apply("no-such-profile.yaml")
        assert status(tuning) == dict.fromkeys(knobs.names(), "skipped")
        assert {row.why for row in tuning.applied} == {"switched off by GPUTUNE_DISABLE=1"}
        assert tuning.dataloader_kwargs() == {"num_workers": 0, "pin_memory": False}
        assert tuning.pad(13) == 13

    def test_a_broken_profile_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "profile.yaml").write_text("schema: 1\n")
        with pytest.raises(ProfileError, match="created: this key is missing"):
            apply(tmp_path / "profile.yaml")


class TestMixedPrecision:
    @pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
    def test_autocast_computes_in_the_chosen_dtype(self, dtype: str) -> None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        x = torch.ones(8, 8, device=device)
        with Tuning({"amp_dtype": dtype}).autocast():
            assert (x @ x).dtype == getattr(torch, dtype)

    @pytest.mark.parametrize(("dtype", "enabled"), [("float16", True), ("bfloat16", False), (None, False)])
    def test_the_scaler_is_enabled_for_float16_only(self, dtype: str | None, enabled: bool) -> None:
        scaler = Tuning({"amp_dtype": dtype}).grad_scaler()
        assert isinstance(scaler, torch.amp.GradScaler)
        assert scaler.is_enabled() is enabled


class TestPrepare:
    def test_convolutions_go_to_channels_last_where_chosen(self) -> None:
        model = nn.Sequential(nn.Conv2d(8, 8, 3), nn.Linear(4, 4))
        tuning = Tuning({"channels_last": True})
        assert tuning.family is None
        assert tuning.prepare(model) is model
        assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
        assert tuning.family == "convnet"

    @pytest.mark.parametrize(
        ("chosen", "layer"),
        [({}, nn.Conv2d), ({"channels_last": False}, nn.Conv2d), ({"channels_last": True}, nn.Conv1d)],
    )
    def test_not_where_it_was_not_chosen_nor_without_2d_convolutions(self, chosen: dict[str, Any], layer: Any) -> None:
        assert Tuning(chosen).prepare(layer(8, 8, 3)).weight.is_contiguous()

    def test_3d_convolutions_beside_2d_ones_are_no_error(self) -> None:
        model = nn.ModuleList([nn.Conv2d(8, 8, 3), nn.Conv3d(8, 8, 3)])
        assert Tuning({"channels_last": True}).prepare(model) is model

    def test_the_family_has_choices_of_its_own(self) -> None:
        families = {"convnet": {"amp_dtype": "float16", "channels_last": True}, "transformer": {"amp_dtype": None}}
        tuning = Tuning({"amp_dtype": "bfloat16", "channels_last": False}, families)
        assert not tuning.grad_scaler().is_enabled()
        model = tuning.prepare(nn.Conv2d(8, 8, 3))
        assert model.weight.is_contiguous(memory_format=torch.channels_last)
        assert tuning.grad_scaler().is_enabled()
        tuning.prepare(nn.TransformerEncoderLayer(8, 2, 16))
        assert not mixed(tuning)
        tuning.prepare(nn.Linear(8, 8))
        assert tuning.autocast().fast_dtype == torch.bfloat16

    def test_calls_are_compiled_where_chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiled: list[Any] = []
        monkeypatch.setattr("gputune.runtime.tuning.compile_in_place", lambda model, failed: compiled.append(model))
        model = nn.Linear(4, 4)
        assert Tuning({"compile": False}, {"convnet": {"compile": True}}).prepare(model) is model
        assert compiled == []
        assert Tuning({"compile": True}).prepare(model) is model
        assert compiled == [model]

    def test_the_optimizer_is_fused_where_chosen_for_the_kind_of_network(self) -> None:
        tuning = Tuning({"fused_optimizer": True}, {"mlp": {"fused_optimizer": False}})
        model = nn.Linear(4, 4)
        assert torch.optim.AdamW(model.parameters(), **tuning.optimizer_kwargs()).defaults["fused"] is True
        tuning.prepare(model)
        assert tuning.optimizer_kwargs() == {}
        assert Tuning({}).optimizer_kwargs() == {}

    def test_a_familys_choice_that_was_measured_elsewhere_does_not_hold(self) -> None:
        made = profile({}, fingerprint=ELSEWHERE, families={"convnet": {"amp_dtype": "float16"}})
        tuning = apply(made)
        tuning.prepare(nn.Conv2d(8, 8, 3))
        assert not mixed(tuning)
        tuning = apply(made, ignore_fingerprint=True)
        tuning.prepare(nn.Conv2d(8, 8, 3))
        assert tuning.grad_scaler().is_enabled()


class TestDataLoader:
    def load(self, **chosen: Any) -> list[int]:
        arguments = Tuning({f"dataloader_{name}": value for name, value in chosen.items()}).dataloader_kwargs()
        loader = torch.utils.data.DataLoader(range(6), batch_size=2, **arguments)
        return [int(batch.sum()) for batch in loader]

    def test_what_belongs_to_workers_is_not_there_without_them(self) -> None:
        """torch raises ValueError for it."""
        assert self.load(workers=0, prefetch_factor=4) == [1, 5, 9]

    @pytest.mark.slow
    def test_torchs_own_prefetch(self) -> None:
        assert self.load(workers=1, prefetch_factor=None) == [1, 5, 9]

    def test_nothing_chosen_is_torchs_default(self) -> None:
        assert Tuning({}).dataloader_kwargs() == {"num_workers": 0, "pin_memory": False}
        assert Tuning({}).dataloader_kwargs(range(100)) == {"num_workers": 0, "pin_memory": False}


class TestDataLoaderHere:
    """A profile's choices in a process with other CPUs, with a small /dev/shm, and for a dataset of another kind."""

    @pytest.fixture(autouse=True)
    def _four_cpus(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tuning_module, "room", lambda host: Room(cpus=4, shm_bytes=64 << 20))

    def applied(self, values: dict[str, Any], cpu_budget: int, rows: Any = (), families: Any = None) -> Tuning:
        here = replace(local_fingerprint(Host()), cpu_budget=cpu_budget)
        chosen = {f"dataloader_{name}": value for name, value in values.items()}
        return apply(profile(chosen, fingerprint=here, families=families, measurements=tuple(rows)))

    def why(self, tuning: Tuning, name: str = "workers") -> tuple[Any, str]:
        [row] = [row for row in tuning.applied if row.setting == f"dataloader_{name}"]
        return row.after, row.why

    def test_workers_follow_the_cpus_and_it_is_said(self) -> None:
        tuning = self.applied({"workers": 16, "prefetch_factor": 4}, cpu_budget=16)
        assert self.why(tuning)[0] == 16
        for _ in range(2):
            assert tuning.dataloader_kwargs()["num_workers"] == 4
            after, why = self.why(tuning)
            assert after == 4
            assert why == "used by the script; 16 workers were measured with 16 CPUs, and this process has 4"

    @pytest.mark.slow
    def test_a_dataset_of_another_kind_gets_the_workers_of_that_kind(self) -> None:
        families = {"memory": {"dataloader_workers": 0}, "waiting": {"dataloader_workers": 16}}
        tuning = self.applied({"workers": 4}, cpu_budget=4, families=families)
        assert tuning.dataloader_kwargs(torch.arange(100_000))["num_workers"] == 0
        assert self.why(tuning)[1].endswith(
            "; its samples cost next to nothing; 0 workers measured best for such samples"
        )
        assert tuning.dataloader_kwargs(Sleeping())["num_workers"] == 16
        assert tuning.dataloader_kwargs(Sleeping(length=1))["num_workers"] == 0
        assert tuning.dataloader_kwargs()["num_workers"] == 4
        assert not self.why(tuning)[1].endswith("such samples")


class Sleeping:
    def __init__(self, length: int = 100) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        time.sleep(0.002)
        return index


class TestPad:
    multiples = {"bfloat16": 8, "tf32": 4, "float32": 2}

    @pytest.mark.parametrize(("n", "padded"), [(1, 8), (8, 8), (9, 16), (50257, 50264), (2**40, 2**40)])
    def test_to_the_next_multiple(self, n: int, padded: int) -> None:
        assert Tuning({"dimension_multiple": self.multiples}).pad(n, "bfloat16") == padded

    @pytest.mark.parametrize(
        ("chosen", "padded"),
        [
            ({"amp_dtype": "bfloat16", "matmul_precision": "tf32"}, 16),
            ({"amp_dtype": None, "matmul_precision": "tf32"}, 12),
            ({"matmul_precision": "ieee"}, 10),
            ({}, 10),
            ({"amp_dtype": "float16"}, 9),  # which was not measured
            ({"dimension_multiple": {}}, 9),
            ({"dimension_multiple": None}, 9),
        ],
    )
    def test_without_a_dtype_it_is_what_matmuls_run_in(self, chosen: dict[str, Any], padded: int) -> None:
        assert Tuning({"dimension_multiple": self.multiples, **chosen}).pad(9) == padded

    @pytest.mark.parametrize(
        ("dtype", "padded"),
        [
            (torch.bfloat16, 16),
            ("bfloat16", 16),
            ("torch.bfloat16", 16),
            (torch.float32, 10),
            ("tf32", 12),
            ("float64", 9),
        ],
    )
    def test_a_dtype_or_its_name(self, dtype: Any, padded: int) -> None:
        assert Tuning({"dimension_multiple": self.multiples}).pad(9, dtype) == padded

    @pytest.mark.slow
    def test_tf32_that_the_user_had_set_counts_too(self, tmp_path: Path) -> None:
        path = written(tmp_path, measured_here({"dimension_multiple": self.multiples, "matmul_precision": "ieee"}))
        answer = torch_child.ask(f"""
torch.set_float32_matmul_precision("high")
from gputune.runtime.tuning import apply
answer = apply({path!r}).pad(9)
""")
        assert answer == 12

    @pytest.mark.parametrize("n", [0, -1, 1.5, "8", None, True, float("nan")])
    def test_n_must_be_a_positive_whole_number(self, n: Any) -> None:
        with pytest.raises(ValueError, match="a positive integer is expected"):
            Tuning({}).pad(n)

    @pytest.mark.parametrize("dtype", ["float17", "nn", "", 3])
    def test_an_unknown_dtype_is_an_error(self, dtype: Any) -> None:
        with pytest.raises(ValueError, match="neither a torch"):
            Tuning({}).pad(9, dtype)
