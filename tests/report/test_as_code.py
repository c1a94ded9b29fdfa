"""What is put into scripts, as lines of Python that run."""

import ast
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import gputune, refusal
from making import CHOSEN, H200, choices, profile, program, written
from torch import nn

from gputune import knobs
from gputune.live.models import ModelKey
from gputune.profile import Fingerprint, Profile
from gputune.report.as_code import FLAGS, SDPA, text

CPU = Fingerprint(cpu="AMD EPYC", cpu_budget=4, torch="2.11.0")
FLAGS_OFF = {"cudnn_benchmark": False, "cudnn_tf32": True, "matmul_precision": "ieee", "sdpa_backend": None}
FAMILIES: dict[str, dict[str, Any]] = {
    "convnet": {"amp_dtype": "bfloat16", "channels_last": True, "compile": True, "fused_optimizer": True},
    "transformer": {"amp_dtype": "float16", "channels_last": False, "compile": False, "fused_optimizer": True},
    "recurrent": {"amp_dtype": None, "channels_last": False, "compile": False, "fused_optimizer": False},
    "memory": {"dataloader_workers": 0},
}


def made(values: Any = FLAGS_OFF, families: Any = None, **more: Any) -> Profile:
    return profile(values, **{"fingerprint": CPU, **more}, families=families)


def block(code: str, title: str) -> list[str]:
    [found] = [part for part in code.split("\n# ") if part.removeprefix("# ").startswith(title)]
    return [line for line in found.split("\n")[1:] if line]


class Model(nn.Sequential):
    def compile(self) -> None:  # type: ignore[override]
        """Nothing is compiled."""


def ran(code: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of a script after these lines ran in it, on the CPU."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    model = Model(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))
    names: dict[str, Any] = {
        "model": model, "optimizer": torch.optim.AdamW(model.parameters()), "inputs": torch.ones(2, 3, 4, 4),
        "targets": torch.ones(2, 2), "dataset": [1, 2],
        "loss_function": lambda outputs, targets: (outputs.float() - targets).square().mean(),
    }  # fmt: skip
    precision = torch.get_float32_matmul_precision()
    try:
        with torch.backends.cudnn.flags(enabled=True):
            exec(compile(code, "as_code", "exec"), names)
    finally:
        torch.set_float32_matmul_precision(precision)
    return names


class TestKinds:
    code = text(made(families=FAMILIES))

    def test_a_kind_with_everything(self) -> None:
        assert block(self.code, "Models of the kind convnet") == [
            'model = model.to("cpu")',
            "model = model.to(memory_format=torch.channels_last)",
            "model.compile()",
            "optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # likewise Adam and SGD",
            'with torch.autocast("cpu", dtype=torch.bfloat16):',
            "    loss = loss_function(model(inputs), targets)",
            "loss.backward()",
        ]

    def test_float16_and_it_alone_has_a_scaler(self) -> None:
        lines = block(self.code, "Models of the kind transformer")
        assert 'scaler = torch.amp.GradScaler("cpu")  # once, before the training loop' in lines
        assert lines[-3:] == ["scaler.scale(loss).backward()", "scaler.step(optimizer)", "scaler.update()"]
        assert "GradScaler" not in "".join(block(self.code, "Models of the kind convnet"))

    def test_nothing_for_a_kind_that_nothing_gains_for_nor_for_samples(self) -> None:
        assert "recurrent" not in self.code
        assert "kind memory" not in self.code
        assert "any other kind" not in self.code

    def test_a_model_of_no_known_kind(self) -> None:
        lines = ['model = model.to("cuda")', 'with torch.autocast("cuda", dtype=torch.bfloat16):']
        for families, title in ((FAMILIES, "Models of any other kind"), (None, "Any model")):
            code = text(made({"amp_dtype": "bfloat16"}, families, fingerprint=H200))
            assert block(code, title)[:2] == lines


class TestScript:
    def test_flags_that_differ_from_torchs_default(self) -> None:
        code = text(made({"cudnn_benchmark": True, "matmul_precision": "tf32", "cudnn_tf32": False}))
        assert block(code, "Every script, measured on AMD EPYC") == [
            "import torch", "torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.allow_tf32 = False",
            'torch.set_float32_matmul_precision("high")',
        ]  # fmt: skip
        assert text(made()) == "# Every script, measured on AMD EPYC\nimport torch\n\n"

    @pytest.mark.parametrize("backend", ["cudnn", *SDPA])
    def test_back_ends_of_attention(self, backend: str) -> None:
        lines = block(text(made({"sdpa_backend": backend}, fingerprint=H200)), "Every script")[1:]
        assert all(line.startswith(("torch.backends.cuda.enable_", "torch._C._set_sdp")) for line in lines)
        assert len(lines) == {"efficient": 2, "math": 3}.get(backend, 1)
        assert not any(backend in line for line in lines if line.startswith("torch.backends"))

    def test_variables_stand_before_torch_and_leave_the_users(self) -> None:
        lines = block(text(made({"omp_threads": 3, "expandable_segments": True})), "Every script")
        assert lines[0] == "import os"
        assert 'os.environ.setdefault("OMP_NUM_THREADS", "3")' in lines[1 : lines.index("import torch")]

    def test_dataloaders(self) -> None:
        values = {"dataloader_workers": 8, "dataloader_prefetch_factor": 4, "dataloader_pin_memory": True}
        assert block(text(made(values)), "A DataLoader") == [
            "loader = torch.utils.data.DataLoader(dataset, num_workers=8, prefetch_factor=4, pin_memory=True)"
        ]
        assert "DataLoader" not in text(made({"dataloader_workers": 0}))

    def test_every_flag_of_torchs_has_a_line(self) -> None:
        assert set(FLAGS) == {name for name in knobs.names() if hasattr(knobs.load(name), "apply")}

    def test_threads_are_exported_for_all_scripts_and_set_in_one_that_was_tuned(self) -> None:
        assert "set_num_threads" not in text(made({"omp_threads": 3}))
        profile = made({})
        one = {"omp_threads": 1}
        tuned = program(settings=choices(one), by_numerics={"mixed": one}, fingerprint=profile.fingerprint)
        assert "torch.set_num_threads(1)" in text(replace(profile, programs=(tuned,)))


class TestPrograms:
    def test_each_with_its_flags_and_its_dataloader(self) -> None:
        tuned = choices({"amp_dtype": "bfloat16", "matmul_precision": "tf32", "dataloader_workers": 2})
        values = {name: choice.value for name, choice in tuned.items()}
        one = program("train.py", fingerprint=CPU, settings=tuned, by_numerics={"mixed": values})
        code = text(made(programs=(one,)))
        assert block(code, "train.py (ResNet), as tuned") == [
            'torch.set_float32_matmul_precision("high")',
            "loader = torch.utils.data.DataLoader(dataset, num_workers=2)",
            'model = model.to("cpu")',
            'with torch.autocast("cpu", dtype=torch.bfloat16):',
            "    loss = loss_function(model(inputs), targets)",
            "loss.backward()",
        ]

    def test_each_setting_of_its_models_has_a_line(self) -> None:
        values = dict.fromkeys(knobs.in_models(), True) | {"amp_dtype": "bfloat16"}
        one = program("train.py", fingerprint=CPU, settings=choices(values), by_numerics={"mixed": values})
        lines = block(text(made(programs=(one,))), "train.py (ResNet), as tuned")
        words = ("memory_format", "compile", "fused", "autocast", "inference_mode")
        assert [word for word in words if any(word in line for line in lines)] == list(words)
        assert len(lines) == len(values) + 3, "and a line for the device, and two for the loss"

    @pytest.mark.parametrize("name", ["a\nimport evil", "a\u2028evil()", "a\x00b", "a\x1b[31m", "a\rb"])
    def test_no_name_is_more_than_a_comment(self, name: str) -> None:
        one = program(name, fingerprint=CPU, models=(ModelKey(class_name=name, digest="0" * 16),))
        code = text(made(families={name: FAMILIES["convnet"]}, programs=(one,), fingerprint=replace(CPU, cpu=name)))
        assert "evil" not in ast.dump(ast.parse(code))
        assert all(char.isprintable() or char == "\n" for char in code)


def test_the_whole_of_a_profile_of_a_gpu_is_python() -> None:
    values = dict.fromkeys(CHOSEN) | CHOSEN
    ast.parse(text(profile(values, families=FAMILIES, programs=(program(), program("other.py")))))


@pytest.mark.parametrize("families", [{name: own} for name, own in FAMILIES.items()])
def test_the_whole_of_a_profile_of_a_cpu_runs(families: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"omp_threads": 3, "dataloader_workers": 2, "cudnn_benchmark": True, "amp_dtype": "bfloat16"}
    code = text(made(values, families, programs=(program(fingerprint=CPU, settings=choices(values)),)))
    names = ran(code, monkeypatch)
    assert names["model"][0].weight.grad is not None
    assert names["loader"].num_workers == 2
    assert os.environ.pop("OMP_NUM_THREADS") == "3"


def test_the_verb(tmp_path: Path) -> None:
    path = written(tmp_path, made(families=FAMILIES))
    done = gputune("show", path, "--as-code")
    assert (done.returncode, done.stdout, done.stderr) == (0, text(made(families=FAMILIES)), "")
    assert refusal("show", path, "--as-code", "--json").startswith("gputune: --json and --as-code")
