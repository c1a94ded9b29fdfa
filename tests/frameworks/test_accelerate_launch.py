"""`gputune apply profile.yaml -- accelerate launch script.py`: what the script finds below two programs."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from making import environ, gputune, profile, written

from gputune.profile import Fingerprint

pytestmark = pytest.mark.frameworks

ACCELERATE = str(Path(sys.executable).with_name("accelerate"))
VALUES = {"amp_dtype": "bfloat16", "cudnn_benchmark": True, "matmul_precision": "tf32", "omp_threads": 3}

SCRIPT = """
import json, os, sys, torch
told = {
    "level": torch.get_float32_matmul_precision(),
    "benchmark": torch.backends.cudnn.benchmark,
    "OMP_NUM_THREADS": os.environ["OMP_NUM_THREADS"],
    "ACCELERATE_MIXED_PRECISION": os.environ["ACCELERATE_MIXED_PRECISION"],
}
with open(os.path.join(sys.argv[1], "rank" + os.environ.get("RANK", "")), "w") as file:
    json.dump(told, file)
sys.exit(37)
"""

Launched = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture
def launched(tmp_path: Path, here: Fingerprint) -> Callable[..., Launched]:
    """Run the script below `gputune apply` and `accelerate launch OPTIONS`: how it ended, and what each rank told."""

    def run(*options: str, **variables: str) -> Launched:
        path, script = written(tmp_path, profile(VALUES, here)), tmp_path / "script.py"
        script.write_text(SCRIPT)
        (tmp_path / "told").mkdir()
        env = environ(HF_HOME=str(tmp_path / "home"), **variables)  # where nobody ran `accelerate config`
        words = [ACCELERATE, "launch", *options, str(script), str(tmp_path / "told")]
        done = gputune("apply", path, "--", *words, env=env)
        return done, {file.name: json.loads(file.read_text()) for file in (tmp_path / "told").iterdir()}

    return run


def test_one_process(launched: Callable[..., Launched]) -> None:
    """The flags reach it; its threads are what Accelerate is told or counts itself, and not what gputune measured.

    Whatever code the script ends with, Accelerate raises CalledProcessError and ends with 1.
    """
    done, told = launched("--cpu", "--num_processes", "1", "--num_cpu_threads_per_process", "2")
    assert told == {
        "rank": {"level": "high", "benchmark": True, "OMP_NUM_THREADS": "2", "ACCELERATE_MIXED_PRECISION": "no"}
    }
    assert done.returncode == 1
    assert "returned non-zero exit status 37" in done.stderr


def test_two_processes(launched: Callable[..., Launched]) -> None:
    """Through torchrun's launcher, as for two GPUs; on a CPU Accelerate starts several with mpirun only. Its code is
    1, too.
    """
    options = ["--multi_gpu", "--num_processes", "2", "--main_process_port", "0"]
    done, told = launched(*options, OMP_NUM_THREADS="2")
    each = {"level": "high", "benchmark": True, "OMP_NUM_THREADS": "2", "ACCELERATE_MIXED_PRECISION": "no"}
    assert told == {"rank0": each, "rank1": each}
    assert done.returncode == 1
    assert "exitcode  : 37" in done.stderr
