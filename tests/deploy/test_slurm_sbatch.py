"""The batch script that `gputune deploy slurm sbatch` prints, run by bash. tests/slurm submits it to a real Slurm.

The stand-in for `srun` starts the command once for each of two nodes and records its own arguments; pyxis is not run.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linted import linted
from making import command, environ, executable

from gputune.deploy.slurm import Job, sbatch

JOB = Job(
    nodes=2, tasks_per_node=4, gpus_per_node=4, cpus_per_task=12, image=None, gputune=["/opt/gputune/bin/gputune"],
    command=["python", "train.py"],
)  # fmt: skip

AWKWARD = [
    "env", "A=1", "--x=1,2", "~/x", "$HOME", "*", "it's", "two\nlines", "", "{a,b}", "`id`", "\\", '"', "=a", "[1]=2",
    "#c", "é",
]  # fmt: skip

SRUN = """
import json, os, subprocess, sys
words = sys.argv[1:]
first = next(place for place, word in enumerate(words) if not word.startswith("--"))
with open(os.environ["ASKED"], "a") as file:
    file.write(json.dumps([words[:first], words[first:]]) + "\\n")
nodes = ["n1"] if "--nodes=1" in words else ["n1", "n2"]
sys.exit(max(subprocess.run(words[first:], env={**os.environ, "SLURMD_NODENAME": node}).returncode for node in nodes))
"""

GPUTUNE = """
import json, os, sys
from pathlib import Path
verb, *words = sys.argv[1:]
if verb == os.environ.get("FAILS"):
    sys.exit("gputune: nothing could be measured; see: gputune check")
if verb == "apply":
    os.execvp(words[2], words[2:])
Path(words[words.index("-o") + 1]).write_text(json.dumps(words))
"""


@pytest.fixture
def run(tmp_path: Path):
    """Runs a job's script in a folder with a space in its name; what it came to, and what it asked of srun."""
    bin_, folder = tmp_path / "bin", tmp_path / "a job"
    bin_.mkdir()
    folder.mkdir()
    for name, text in (("srun", SRUN), ("gputune", GPUTUNE)):
        executable(bin_ / name, f"#!{sys.executable}{text}")

    def run(job: Job, edited: Mapping[str, str] = {}, **variables: str):
        script = sbatch(replace(job, gputune=["gputune"]))
        for line, other in edited.items():
            assert line in script
            script = script.replace(line, other)
        env = environ(
            ASKED=str(tmp_path / "asked"), PATH=f"{bin_}:{os.environ['PATH']}", SLURM_SUBMIT_DIR=str(folder),
            SLURM_JOB_ID="7", SLURM_NNODES="2", SLURM_NTASKS_PER_NODE="4", **variables,
        )  # fmt: skip
        done = command(["bash", "-s"], env, input=script)
        asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
        return done, asked, folder / "gputune-7"

    return run


def test_the_resources_requested_from_slurm() -> None:
    options = ["nodes=2", "ntasks-per-node=4", "gpus-per-node=4", "cpus-per-task=12"]
    assert sbatch(JOB).splitlines()[:6] == ["#!/bin/bash", *(f"#SBATCH --{option}" for option in options), ""]
    plain = sbatch(replace(JOB, gpus_per_node=None, cpus_per_task=None))
    assert "#SBATCH --gpus" not in plain
    assert "CPUS_PER_TASK=" not in plain.split("measure()")[0]


@pytest.mark.slow
def test_each_node_probes_once_and_all_ranks_apply_what_was_merged(run) -> None:
    done, asked, profiles = run(replace(JOB, command=["sh", "-c", "exit 37"]), SLURM_CPUS_PER_TASK="12")
    assert done.returncode == 37
    assert [words[0] for _, words in asked] == ["sh", "gputune", "gputune"]
    options = ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1", "--cpus-per-task=48"]
    assert asked[0][0] == options
    for node in ("n1", "n2"):
        assert json.loads((profiles / f"{node}.yaml").read_text()) == [
            "--device", "all", "--budget", "standard", "-o", f"{profiles}/{node}.yaml",
        ]  # fmt: skip
    assert json.loads((profiles / "job.yaml").read_text())[:2] == [f"{profiles}/n1.yaml", f"{profiles}/n2.yaml"]
    assert asked[2] == [[], ["gputune", "apply", f"{profiles}/job.yaml", "--", "sh", "-c", "exit 37"]]


@pytest.mark.slow
def test_of_a_job_that_is_started_again_no_old_profile_is_merged(run) -> None:
    _, _, profiles = run(JOB)
    (profiles / "n9.yaml").write_text("of a node that the job no longer has")
    run(JOB)
    assert json.loads((profiles / "job.yaml").read_text())[:2] == [f"{profiles}/n1.yaml", f"{profiles}/n2.yaml"]


@pytest.mark.slow
def test_what_others_keep_in_the_folder_that_was_named_stays(run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    (tmp_path / "run.log").write_text("mine")
    named = {'folder="${SLURM_SUBMIT_DIR:-$PWD}"': f'folder="{tmp_path}"'}
    done, asked, _ = run(replace(JOB, command=["true"]), edited=named)
    assert (done.returncode, asked[-1][1][:3]) == (0, ["gputune", "apply", f"{tmp_path}/gputune-7/job.yaml"])
    assert json.loads((tmp_path / "gputune-7" / "job.yaml").read_text())[:1] == [f"{tmp_path}/gputune-7/n1.yaml"]
    assert (tmp_path / "mine.yaml").read_text() == (tmp_path / "run.log").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["probe", "merge"])
def test_what_fails_of_gputune_leaves_the_job_as_it_was(run, verb: str) -> None:
    done, asked, _ = run(replace(JOB, command=["sh", "-c", "exit 37"]), FAILS=verb)
    assert (done.returncode, asked[-1]) == (37, [[], ["sh", "-c", "exit 37"]])
    assert "gputune: no profile was measured; the command runs without one" in done.stderr
    assert "gputune: nothing could be measured; see: gputune check" in done.stderr


def test_switched_off_nothing_is_measured(run) -> None:
    done, asked, profiles = run(replace(JOB, command=["true"]), GPUTUNE_DISABLE="1")
    assert (done.returncode, asked, profiles.exists()) == (0, [[[], ["true"]]], False)


@pytest.mark.slow
def test_in_an_image_every_step_is_and_sees_the_folder(run) -> None:
    _, asked, profiles = run(replace(JOB, image="registry#team/image:1", command=["true"]))
    inside = [
        "--container-image=registry#team/image:1",
        "--container-env=GPUTUNE_DISABLE,GPUTUNE_NUMERICS,GPUTUNE_REPORT",
        f"--container-mounts={profiles}:{profiles}",
    ]
    assert [options[-3:] for options, _ in asked] == [inside] * 3


@pytest.mark.slow
def test_in_an_image_without_a_profile_the_folder_is_not_asked_for(run) -> None:
    _, asked, _ = run(replace(JOB, image="image", command=["true"]), FAILS="probe")
    assert [option.split("=")[0] for option in asked[-1][0]] == ["--container-image", "--container-env"]


@pytest.mark.cluster
@pytest.mark.parametrize("image", [None, "registry#it's,1:2"])
@pytest.mark.parametrize("words", [["python", "train.py"], AWKWARD])
def test_it_passes_shellcheck(words: list[str], image: str | None) -> None:
    linted(sbatch(replace(JOB, command=words, image=image)))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])), min_size=1))
def test_whatever_the_command_it_is_run_word_by_word(words: list[str]) -> None:
    script = sbatch(replace(JOB, command=words)).split("gputune=(")[0]
    script += "printf '%s\\0' \"${command[@]}\""
    done = subprocess.run(["bash", "-s"], input=script.encode(), capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


def test_the_words_that_start_gputune_are_quoted_too() -> None:
    assert f"gputune=({shlex.quote('/a b/gputune')})" in sbatch(replace(JOB, gputune=["/a b/gputune"]))
