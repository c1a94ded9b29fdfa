"""What was tuned for a program is set in its process once its models are known: its number of threads, and torch's
defaults in place of the flags that every program gets.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from making import choices, command, environ, profile, program, row
from torch import nn

from gputune.host import Host
from gputune.live.models import key
from gputune.profile import save
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
torch.set_num_interop_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    seen.append((torch.get_num_threads(), torch.backends.cudnn.benchmark))
for each in zip(*seen):
    print(*each)
"""


ANSWERS = """
import torch
seen = []
class Noting(torch.nn.Linear):
    def forward(self, x):
        seen.append(torch.is_inference_mode_enabled())
        return super().forward(x)
model = Noting(4, 4)
with torch.no_grad():
    for _ in range(20):
        out = model(torch.ones(2, 4))
print(seen.index(True), seen[-1], out.is_inference())
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The command that applies a profile in which this very script is to have one thread, and others cuDNN's search."""
    here, one = local_fingerprint(Host()), {"omp_threads": 1}
    tuned = program(
        "train.py", fingerprint=here, models=(key(nn.Sequential(nn.Linear(4, 4))),), settings=choices(one),
        by_numerics={"rounding": one}, measurements=(row("tune", "throughput", 1.0, cudnn_benchmark=True),),
    )  # fmt: skip
    save(replace(profile({"cudnn_benchmark": True}), fingerprint=here, programs=(tuned,)), tmp_path / "profile.yaml")
    (tmp_path / "train.py").write_text(SCRIPT)
    script = [sys.executable, str(tmp_path / "train.py")]
    return [sys.executable, "-m", "gputune", "apply", "--strict", str(tmp_path / "profile.yaml"), "--", *script]


def test_it_is_set_after_the_second_step(words: list[str]) -> None:
    done = command(words, environ())
    threads, search = done.stdout.splitlines()
    assert threads.split()[1:] == ["1", "1", "1"]
    assert search == "True False False False"
    assert "omp_threads 1" in done.stderr
    assert "cudnn_benchmark False (in this process; as it was tuned)" in done.stderr


def test_the_users_own_variable_is_kept(words: list[str]) -> None:
    done = command(words, environ(OMP_NUM_THREADS="2", GPUTUNE_REPORT="1"))
    assert len(set(done.stdout.splitlines()[0].split())) == 1
    assert ": kept-user (environment), already exported: OMP_NUM_THREADS=2" in done.stderr


def test_a_program_that_trains_nothing_gets_it_after_a_dozen_calls(tmp_path: Path) -> None:
    here, one = local_fingerprint(Host()), {"inference_mode": True}
    model = replace(key(nn.Linear(4, 4)), class_name="Noting")
    tuned = program(
        "answer.py", fingerprint=here, models=(model,), settings=choices(one), by_numerics={"exact": one},
        measurements=(), trains=False,
    )  # fmt: skip
    save(replace(profile({}), fingerprint=here, programs=(tuned,)), tmp_path / "profile.yaml")
    (tmp_path / "answer.py").write_text(ANSWERS)
    script = [sys.executable, str(tmp_path / "answer.py")]
    done = command(
        [sys.executable, "-m", "gputune", "apply", "--strict", str(tmp_path / "profile.yaml"), "--", *script], environ()
    )
    assert done.stdout.split() == ["12", "True", "False"]
    assert "put into Noting (mlp): inference_mode" in done.stderr
