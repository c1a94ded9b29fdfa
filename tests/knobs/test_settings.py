"""The closed list of settings, and the folder as the shim loads it: alone, under another name."""

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch_child
from making import environ

from gputune import advice, knobs, plugins
from gputune.profile import Fingerprint

FOLDER = Path(knobs.__file__).parent


def test_a_setting_is_a_file() -> None:
    files = {path.stem for path in FOLDER.glob("*.py") if not path.name.startswith("_")}
    assert knobs.names() == sorted(files)
    assert set(knobs.all_knobs()) == files


def test_a_file_that_an_editor_or_another_system_leaves_is_none(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("._amp_dtype.py", ".#x.py", "x.orig.py", "_shared.py", "one.py"):
        (tmp_path / name).touch()
    package = types.ModuleType("left")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, "left", package)
    assert plugins.names("left") == ("one",)


@pytest.mark.parametrize("name", ["", "no_such", "_tf32", "_evidence", "__init__", "os", "../errors", "amp_dtype.os"])
def test_any_other_name_is_none(name: str) -> None:
    with pytest.raises(KeyError):
        knobs.load(name)


def test_a_choice_rests_on_fields_of_the_fingerprint() -> None:
    for name, setting in knobs.all_knobs().items():
        assert all(hasattr(Fingerprint(), field) for field in setting.DEPENDS), name


def test_a_setting_of_code_names_the_line_in_the_script() -> None:
    for name, setting in knobs.all_knobs().items():
        use = getattr(setting, "USE", "")
        assert bool(use) == (setting.PHASE == "code"), name
        assert not use or "tuning." in use or name == "inference_mode", name  # which no profile chooses


def test_the_knobs_that_are_turned_on_in_models_take_lines_of_a_script_and_come_in_order() -> None:
    names = knobs.in_models()
    assert all(knobs.load(name).PHASE == "code" and callable(knobs.load(name).turn_off) for name in names)
    assert names.index("amp_dtype") < names.index("fused_optimizer") < names.index("compile")


def test_a_knob_is_turned_on_behind_those_that_it_comes_after() -> None:
    every = knobs.in_order(knobs.names())
    for name in every:
        after = getattr(knobs.load(name), "AFTER", ())
        assert all(every.index(other) < every.index(name) for other in after), name


def test_nothing_is_recommended_without_measurements_but_torchs_default() -> None:
    from recorded import facts_of

    for facts in (facts_of(), facts_of("cpu-only")):
        for name, setting in knobs.all_knobs().items():
            choice = advice.recommend(name, facts, [])
            assert choice.gain is None
            assert choice.reason
            if setting.PHASE == "process":
                assert choice.value in (None, knobs.default_of(setting))
            else:
                assert not choice.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "default", "values"),
    [
        ("matmul_precision", "ieee", ["tf32", "ieee", "tf32"]),
        ("cudnn_tf32", True, [False, True, False]),
        ("cudnn_benchmark", False, [True, False, True]),
        ("sdpa_backend", None, ["flash", "efficient", "cudnn", "math", "flash", "cudnn", None]),
    ],
)
def test_applied_it_reads_back_and_can_be_changed(name: str, default: Any, values: list[Any]) -> None:
    assert torch_child.ask(f"""
from gputune import knobs
setting = knobs.load({name!r})
answer = [knobs.default_of(setting), setting.current()]
for value in {values!r}:
    setting.apply(value)
    answer.append(setting.current())
""") == [default, default, *values]


def test_the_folder_works_below_another_parent(tmp_path: Path) -> None:
    code = f"""
import sys, types
parent = types.ModuleType("_private")
parent.__path__ = [{str(FOLDER.parent)!r}]
sys.modules["_private"] = parent
from _private import knobs
for name in knobs.names():
    knobs.load(name)
print([name for name in sys.modules if name.split(".")[0] in ("gputune", "torch", "yaml", "typer")])
print(*knobs.names())
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environ(), capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n" + " ".join(knobs.names()) + "\n"
