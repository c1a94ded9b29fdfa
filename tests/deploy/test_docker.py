"""The docker run line, as a shell reads it."""

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import command, executable

from gputune.checks import shm_size
from gputune.deploy.docker import Machine, amount, shm_mebibytes, text

EIGHT_GPUS = Machine(gpus=8, infiniband=True, cpus=192, memory_bytes=2 << 40)
LAPTOP = Machine(cpus=8, memory_bytes=16 << 30)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a script whose `docker` prints its arguments, for a user whose home has a blank in its name."""
    folder = tmp_path_factory.mktemp("bin")
    executable(folder / "docker", f"#!{sys.executable} -I\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    home = folder / "my home"
    home.mkdir()

    def run(script, name="sh"):
        env = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(home), "LC_ALL": "C.UTF-8"}
        done = command([name, "-c", script], env)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout), home

    return run


@pytest.mark.parametrize("name", ["sh", "bash"])
def test_an_eight_gpu_machine_with_infiniband(shell, name):
    words, home = shell(text(EIGHT_GPUS, "gputune:1", ["python", "train.py"]), name)
    assert Path(home, ".cache/gputune-docker").is_dir(), "what is mounted is there"
    assert words == [
        "run", "--rm",
        "--gpus", "all",
        "--shm-size=32g",
        "--ulimit", "memlock=-1", "--ulimit", "stack=67108864",
        "--device", "/dev/infiniband",
        "--user", f"{os.getuid()}:{os.getgid()}",
        "--env", "HOME=/cache", "--env", "USER=user",
        "--mount", f"type=bind,source={home}/.cache/gputune-docker,target=/cache",
        "--env", "XDG_CACHE_HOME=/cache",
        "--env", "GPUTUNE_PROBE=missing",
        "gputune:1", "python", "train.py",
    ]  # fmt: skip


def test_a_machine_asks_for_what_it_has(shell):
    words, _ = shell(text(LAPTOP, "gputune:1", []))
    assert "--gpus" not in words
    assert "--ulimit" not in words
    assert "--shm-size=2g" in words
    assert words[-1] == "gputune:1"
    words, _ = shell(text(Machine(gpus=1, cpus=16, memory_bytes=128 << 30), "gputune:1", []))
    assert words[2:5] == ["--gpus", "all", "--shm-size=4g"]
    assert "--ulimit" not in words, "one GPU needs no limits of NCCL"


def test_the_reasons_are_comments():
    title, *reasons = [line for line in text(EIGHT_GPUS, "gputune:1", []).splitlines() if line.startswith("# ")]
    assert "about a minute" in title
    assert {line.split(":")[0] for line in reasons} == {
        "# --gpus", "# --shm-size", "# --ulimit", "# --device", "# --user", "# --env", "# --mount",
    }  # fmt: skip


@pytest.mark.parametrize("machine", [EIGHT_GPUS, LAPTOP])
def test_a_shell_finds_nothing_to_act_upon_in_the_comments(machine):
    comments = "".join(line for line in text(machine, "gputune:1", []).splitlines() if line.startswith("#"))
    assert not set("'\"`$();&|<>*?[]{}!\\") & set(comments)


ARGUMENTS = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=4)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(ARGUMENTS)
def test_the_command_arrives_as_it_was_given(shell, arguments):
    words, _ = shell(text(LAPTOP, "gputune:1", ["python", *arguments]))
    assert words[-1 - len(arguments) :] == ["python", *arguments]


@pytest.mark.parametrize(
    ("cpus", "memory_mib", "mebibytes"),
    [(1, 1 << 16, 1024), (16, 1 << 16, 4096), (224, 1 << 21, 1 << 16), (224, 1024, 512), (224, 1, 1), (16, None, 4096)],
)
def test_shared_memory_is_what_workers_need_and_half_of_the_memory_at_most(cpus, memory_mib, mebibytes):
    assert shm_mebibytes(cpus, memory_mib and memory_mib << 20) == mebibytes
    if memory_mib is None or memory_mib > 1024:
        assert mebibytes << 20 >= cpus * 2 * shm_size.BATCH_BYTES


@pytest.mark.parametrize(("mebibytes", "docker", "kubernetes"), [(8192, "8g", "8Gi"), (1536, "1536m", "1536Mi")])
def test_each_engine_writes_an_amount_its_own_way(mebibytes, docker, kubernetes):
    assert (amount(mebibytes, "g", "m"), amount(mebibytes, "Gi", "Mi")) == (docker, kubernetes)
