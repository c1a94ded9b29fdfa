"""What the pages tell a user to write is run as it stands there."""

import ast
import importlib
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pages
import pytest
import torch_child
from making import before_others, environ, profile, python, written
from pages import PAGES, ROOT

import gputune
from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint
from gputune.runtime.tuning import Tuning

MINE = """
import atexit, json
import torch

seen = {"train": set(), "evaluate": set(), "vocabulary": 0}

class Net(torch.nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        seen["vocabulary"] = vocabulary
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
    def forward(self, x):
        out = self.last(torch.relu(self.first(x)))
        seen["train" if self.training else "evaluate"].add(str(out.dtype))
        return out

torch.manual_seed(0)
inputs = torch.randn(640, 8)
dataset = torch.utils.data.TensorDataset(inputs, inputs[:, :4] * 2)
validation = [(inputs[:64], inputs[:64, :4] * 2)]

def loss_function(outputs, targets):
    return torch.nn.functional.mse_loss(outputs.float(), targets)

def tell():
    print(json.dumps({name: sorted(value) if isinstance(value, set) else value for name, value in seen.items()}))
atexit.register(tell)
"""


def recipe() -> str:
    blocks = pages.blocks((ROOT / "docs" / "script.md").read_text(), "python")
    return next(block for block in blocks if "tuning.prepare(Net" in block)


def write_recipe(folder: Path, values: dict[str, Any]) -> Path:
    """The recipe as it is printed, the user's module beside it, and a profile that chooses these values."""
    written(folder, profile(values, fingerprint=local_fingerprint(Host())))
    (folder / "mine.py").write_text(MINE)
    script = folder / "train.py"
    script.write_text(recipe())
    return script


def trained(folder: Path, dtype: str | None) -> Any:
    """The checkpoint after the recipe ran there in this dtype."""
    import torch

    script = write_recipe(folder, {"amp_dtype": dtype})
    torch_child.run(script, folder)
    return torch.load(folder / "checkpoint.pt")


@pytest.mark.sampled(2)
@pytest.mark.frameworks
@pytest.mark.parametrize("dtype", [None, "bfloat16", "float16"])
def test_the_whole_recipe_trains_saves_and_resumes(tmp_path: Path, dtype: str | None) -> None:
    """Gradients are accumulated, unscaled and clipped; the scaler is saved and resumed; evaluation has no autocast."""
    import torch

    values = {"dimension_multiple": {"bfloat16": 8, "float16": 8, "tf32": 8}, "channels_last": True,
              "fused_optimizer": True, "dataloader_workers": 1, "matmul_precision": "tf32"}  # fmt: skip
    write_recipe(tmp_path, {"amp_dtype": dtype, **values})
    losses = []
    for _ in range(2):
        done = python("train.py", env=environ(PYTHONPATH=before_others(tmp_path)), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        family, first, second, *rows, told = done.stdout.splitlines()
        losses += [float(line.split()[1]) for line in (first, second)]
        assert family == "mlp"
        assert json.loads(told) == {
            "train": [f"torch.{dtype or 'float32'}"], "evaluate": ["torch.float32"], "vocabulary": 50264,
        }  # fmt: skip
        assert "fused_optimizer on: applied (profile), used by the script" in rows
    assert losses == sorted(losses, reverse=True), "the second run went on where the first had ended"
    scaler = torch.load(tmp_path / "checkpoint.pt")["scaler"]
    assert (scaler.get("_growth_tracker", 0) > 3) == (dtype == "float16"), "its steps were counted over both runs"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return trained(tmp_path_factory.mktemp("float16"), "float16")


STEPS = 6
"""Of the optimizer in one run of the recipe: two epochs of ten batches, of which four make a step."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [None, "bfloat16", "float16"])
@pytest.mark.parametrize("state", ["full", "empty", "missing"])
def test_a_checkpoint_with_or_without_scaler_state_resumes_with_or_without_a_scaler(
    tmp_path: Path, checkpoint: Any, state: str, dtype: str | None
) -> None:
    """A disabled scaler saves an empty state; a program that had no scaler saves none."""
    import torch

    saved = {"full": checkpoint, "empty": {**checkpoint, "scaler": {}},
             "missing": {name: part for name, part in checkpoint.items() if name != "scaler"}}[state]  # fmt: skip
    torch.save(saved, tmp_path / "checkpoint.pt")
    resumed = trained(tmp_path, dtype)
    assert resumed["optimizer"]["state"][0]["step"] == 2 * STEPS, "the optimizer went on where it was"
    counted = resumed["scaler"].get("_growth_tracker")
    assert counted == (None if dtype != "float16" else 2 * STEPS if state == "full" else STEPS)


@pytest.mark.slow
def test_the_step_for_batch_size_runs() -> None:
    scope: dict[str, Any] = {}
    [block] = pages.blocks((ROOT / "docs" / "batch-size.md").read_text(), "python")
    exec(compile(block, "train.py", "exec"), scope)
    scope["make_training"]()(2)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_python_takes_from_gputune_is_there(page: Path) -> None:
    """Of each block: what is imported of gputune, its functions, and the methods of a Tuning."""
    for block in pages.blocks(page.read_text(), "python"):
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gputune"):
                module = importlib.import_module(node.module or "")
                for one in node.names:
                    assert hasattr(module, one.name) or importlib.import_module(f"{node.module}.{one.name}")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in OURS:
                assert hasattr(OURS[node.value.id](), node.attr), f"{node.value.id}.{node.attr}"


OURS: dict[str, Callable[[], Any]] = {
    "gputune": lambda: gputune,
    "tuning": lambda: Tuning({}, applied=[]),
    **{name: lambda name=name: importlib.import_module(f"gputune.integrations.{name}")
       for name in ("lightning", "transformers", "accelerate")},
}  # fmt: skip
