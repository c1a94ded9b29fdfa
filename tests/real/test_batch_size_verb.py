"""`gputune batch-size` as a user types it, to its end."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from making import environ, gputune, serving
from stepping import TRAINING

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("training")
    (made / "train.py").write_text(TRAINING)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    return gputune(
        "batch-size", "train.py:make_training", "--device", "cpu", "--seconds", "20", "--start", "96", cwd=folder
    )


def test_it_prints_a_table_and_two_sentences(found: Any) -> None:
    assert found.returncode == 0, found.stderr
    words = " ".join(found.stdout.split())
    assert "Training steps by batch on cpu batch samples/s peak memory what became of it" in words
    assert "did not fit: out of memory" in words
    assert "Largest batch: 100. At its peak it leaves " in words
    assert "; the margin is 10 %, " in words
    assert "Best throughput: " in words


def test_progress_is_on_stderr(found: Any) -> None:
    said = [line for line in found.stderr.splitlines() if "this machine is busy" not in line]  # as it may be
    lines = [line.partition(" (") for line in said]
    assert [said for said, _, _ in lines] == [
        "gputune: [1/3] largest batch", "gputune: [2/3] throughput", "gputune: [3/3] once more",
    ]  # fmt: skip
    assert all(elapsed.endswith(" s)") for _, _, elapsed in lines)


@pytest.mark.exhaustive
def test_a_module_is_found_in_the_working_folder_and_json_is_what_was_found(folder: Path) -> None:
    result = gputune(
        "batch-size", "train:make_training", "--device", "cpu", "--seconds", "20", "--start", "64", "--most", "128",
        "--json", cwd=folder,
    )  # fmt: skip
    answer = json.loads(result.stdout)
    assert (answer["largest"], answer["largest_run"], answer["margin"], answer["device"]) == (100, 100, 0.1, "cpu")
    assert {trial["batch"]: trial["fate"] for trial in answer["trials"]}[128] == "no memory"
    assert answer["trials"][0]["peak_bytes"] > 0


def test_ctrl_c_is_one_line_and_leaves_no_process(tmp_path: Path) -> None:
    """In the midst of a step."""
    begun = tmp_path / "begun"
    (tmp_path / "train.py").write_text(
        f"import time, torch\ndef slow():\n    def step(batch_size):\n        open({str(begun)!r}, 'w')\n"
        "        time.sleep(600)\n    return step\n"
    )
    words = [sys.executable, "-m", "gputune", "batch-size", "train.py:slow", "--device", "cpu"]
    child = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ()
    )
    assert child.stderr
    assert any("largest batch" in child.stderr.readline() for _ in range(2)), "behind a line on a busy machine"
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, said = child.communicate(timeout=20)
    assert (child.returncode, out) == (130, "")
    assert said.splitlines()[-1] == "gputune: interrupted; nothing was written"
    assert not serving(str(child.pid))
