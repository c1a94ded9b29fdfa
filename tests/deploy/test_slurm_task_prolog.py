"""The TaskProlog, run by bash as slurmstepd runs it. tests/slurm gives it to a real Slurm."""

import sys
from pathlib import Path

import pytest
from linted import linted
from making import command, environ, profile, written

from gputune.deploy.slurm import task_prolog
from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.cluster

GPUTUNE = [sys.executable, "-P", "-m", "gputune"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    return written(folder, profile({"matmul_precision": "tf32"}, fingerprint=local_fingerprint(Host())))


def run(script: str, **variables: str):
    """Slurm reads what goes to stderr too."""
    return command(["bash", "-c", f"exec 2>&1\n{script}"], env=environ(**variables))


def test_it_says_what_slurm_understands_and_nothing_else(path: str) -> None:
    done = run(task_prolog(path, GPUTUNE))
    assert done.returncode == 0
    assert 'export GPUTUNE_APPLY={"settings":{"matmul_precision":"tf32"}}\n' in done.stdout
    assert all(line.startswith("export ") for line in done.stdout.splitlines())


@pytest.mark.parametrize("gputune", [GPUTUNE, ["/no/such/gputune"], ["sh", "-c", "echo export HALF=1; exit 1"]])
@pytest.mark.parametrize("content", [None, "settings: [", ""])
def test_what_is_wrong_is_not_the_task_s_business(path: str, gputune: list[str], content: str | None) -> None:
    Path(path).unlink()
    if content is not None:
        Path(path).write_text(content)
    done = run(task_prolog(path, gputune))
    assert (done.returncode, done.stdout) == (0, "")


def test_without_a_profile_of_this_machine_auto_does_nothing(tmp_path: Path) -> None:
    done = run(task_prolog("auto", GPUTUNE), XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("profile", ["auto", "/shared/it's $HOME/@gputune@.yaml"])
def test_it_passes_shellcheck(profile: str) -> None:
    linted(task_prolog(profile, ["/opt/a b/gputune"]))
