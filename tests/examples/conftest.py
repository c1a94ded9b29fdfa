"""The examples, each run as its head says, in a folder of its own beside a profile of this machine."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from making import command, environ, not_aborted, profile, written
from printed import EXAMPLES

from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

VALUES = {"amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True}
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs this Python with these words, plain or applied; it must end well."""

    def run(*words: str, applied: bool) -> subprocess.CompletedProcess[str]:
        made = written(tmp_path, profile(VALUES, local_fingerprint(Host())))
        apply = ("-P", "-m", "gputune", "apply", "--numerics", "mixed", made, "--", sys.executable) if applied else ()
        env = environ(OMP_NUM_THREADS="1")
        done = not_aborted(lambda: command([sys.executable, *apply, *words], env=env, cwd=tmp_path))
        assert done.returncode == 0, done.stderr[-3000:]
        assert {path.name for path in tmp_path.iterdir()} == {"profile.yaml"}, "it leaves nothing behind"
        return done

    return run


@pytest.fixture
def words() -> Callable[..., list[str]]:
    """What starts an example, in few steps."""

    def words(script: str) -> list[str]:
        few = {"classifier": ["--epochs", "2"], "ddp": ["--epochs", "2", "--verify"]}.get(script, ["--steps", "60"])
        return [*(TORCHRUN if script == "ddp" else ()), str(EXAMPLES / f"{script}.py"), *few]

    return words


@pytest.fixture
def losses() -> Callable[[str], list[float]]:
    return lambda output: [float(found) for found in re.findall(r"^(?:epoch|step) \d+: loss ([0-9.]+)", output, re.M)]
