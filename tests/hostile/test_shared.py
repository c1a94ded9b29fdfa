"""What is sent on holds no secret, and does not tell who and where: `check --json`, profiles and bug reports.

Secrets stand in variables whose names say nothing or much, in the values of variables that are shown, in what a
dataset and a bench raise, and in the paths of home, user, host and job.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import stand_in
from forked import gputune
from making import command, environ

SECRET, USER, HOST, JOB = "hunter2", "annabeth", "node17", "471147"
TOLD = (SECRET, USER, HOST, JOB)
"""None of these may be in anything that is shared."""

NAMES = {
    "NVIDIA_JWT": SECRET, "TRITON_Pass": SECRET, "NCCL_LOGIN": SECRET, "CUDA_PW": SECRET, "TORCH_pat": SECRET,
    "NVIDIA_API_KEY": SECRET, "OMP_X": SECRET, "MKL_COOKIE": SECRET, "LD_S": SECRET, "ACCELERATE_COMET": SECRET,
    "NCCL_COMM_ID": f"{HOST}:1234", "NCCL_HOSTID": HOST, "TORCHINDUCTOR_REDIS_URL": f"redis://x:{SECRET}@{HOST}",
    "AWS_SECRET_ACCESS_KEY": SECRET, "DATABASE_URL": f"postgres://{USER}:{SECRET}@{HOST}/x",
    "NV_SANITIZER_INJECTION_SOCKET": SECRET, "PYTORCH_HOST": HOST,
}  # fmt: skip
"""They were shown for how they begin, but for two."""


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """An environment that is full of secrets, in which torch and one bench are stand-ins."""
    home = tmp_path / "home" / USER
    home.mkdir(parents=True)
    own = {
        "HOME": str(home), "USER": USER, "LOGNAME": USER, "HOSTNAME": f"{HOST}.example.org",
        "SLURM_JOB_ID": JOB, "SLURM_CPUS_ON_NODE": "2", "SLURMD_NODENAME": HOST,
        "XDG_CACHE_HOME": f"{home}/.cache", "TMPDIR": str(tmp_path), "TORCH_HOME": f"/scratch/{USER}/{JOB}/torch",
        "LD_LIBRARY_PATH": f"{home}/lib:/usr/lib", "TORCHINDUCTOR_CACHE_DIR": f"/tmp/torchinductor_{USER}",
        "NVTX_INJECTION64_PATH": f"{home}/injection.so", "CUDA_COREDUMP_FILE": f"/cores/{HOST}.{JOB}",
        "NCCL_NET_PLUGIN": f"https://{USER}:{SECRET}@proxy.example.org:8080/p.so?token={SECRET}",
        "NCCL_DEBUG_FILE": f"/logs/slurm-{JOB}/{HOST}.log", "TORCH_LOGS": "+dynamo", "NCCL_DEBUG": "WARN",
    }  # fmt: skip
    quoted = f"GET https://{USER}:{SECRET}@{HOST}/x?sig={SECRET}: cannot open {home}/data, /scratch/{JOB}/{USER}"
    stand_in.torch(tmp_path)
    body = f"yield told('precision'); yield Gap(fact='bench.precision', reason={quoted!r}); raise OSError({quoted!r})"
    return environ(**NAMES, **own, PYTHONPATH=stand_in.benches(tmp_path, precision=body))


def tells(text: str) -> list[str]:
    return [line for line in text.splitlines() if any(word in line for word in TOLD)]


@pytest.mark.slow
def test_check_shows_variables_by_an_allow_list_of_names(told: Mapping[str, str]) -> None:
    done = gputune("check", "--json", env=told)
    shown = json.loads(done.stdout)["facts"]["environment"]
    assert not set(NAMES) & set(shown)
    assert (shown["TORCH_LOGS"], shown["NCCL_DEBUG"]) == ("+dynamo", "WARN")
    assert shown["LD_LIBRARY_PATH"] == "~/lib:/usr/lib"
    assert shown["NCCL_NET_PLUGIN"] == "https://proxy.example.org:8080/p.so?..."


@pytest.mark.slow
def test_check_tells_nobody_who_and_where(told: Mapping[str, str]) -> None:
    done = gputune("check", "--json", env=told)
    answer = json.loads(done.stdout)
    assert tells(done.stdout) == []
    assert (answer["facts"]["process"]["user_variable"], answer["facts"]["scheduler"]["job"]) == ("USER", "JOB")
    [injected] = [one for one in answer["findings"] if one["check"] == "injection"]
    assert injected["severity"] == "WARNING", "what is not shown is judged all the same"
    assert "NVTX_INJECTION64_PATH=~/injection.so" in injected["message"]


@pytest.mark.slow
def test_a_number_that_is_also_the_job_s_id_and_a_word_that_is_also_a_name_stay(tmp_path: Path) -> None:
    own = {"SLURM_JOB_ID": "8", "SLURM_CPUS_ON_NODE": "8", "OMP_NUM_THREADS": "8", "CUDA_VISIBLE_DEVICES": "8",
           "USER": "max", "HOST": "0.0.0.0", "JOB_ID": "train",
           "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:512"}  # fmt: skip
    done = gputune("check", "--json", env=environ(**own, PYTHONPATH=stand_in.torch(tmp_path)))
    facts = json.loads(done.stdout)["facts"]
    assert facts["scheduler"]["job"] == "JOB"
    shown = {name: value for name, value in own.items() if name in facts["environment"]}
    assert {name: facts["environment"][name] for name in shown} == shown
    assert {"OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF"} <= set(shown)


@pytest.mark.slow
def test_a_profile_tells_nobody_who_and_where(told: Mapping[str, str], tmp_path: Path) -> None:
    """The one that is named, the one on stdout, and the one that is cached."""
    words = ["probe", "--device", "cpu", "--budget", "standard", "-o", "p.yaml", "--json"]
    done = gputune(*words, "--only", "precision", env=told, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cached = list(Path(told["XDG_CACHE_HOME"]).rglob("*.yaml"))
    for text in (done.stdout, (tmp_path / "p.yaml").read_text(), *(path.read_text() for path in cached)):
        assert "GET https://HOST/x?... cannot open ~/data, /scratch/JOB/USER" in text
        assert tells(text) == []


@pytest.mark.slow
def test_what_a_dataset_raises_is_cut_before_its_end_is(told: Mapping[str, str], tmp_path: Path) -> None:
    """An error's text ends after 300 characters, within a password if it comes to that."""
    url = f"https://{USER}:{SECRET * 9}@{HOST}/x"
    (tmp_path / "data.py").write_text(f"def make(): raise OSError({'x' * 260!r} + ' ' + {url!r})\n")
    words = ["probe", "--device", "cpu", "--budget", "quick", "--only", "dataset", "--dataset", "data.py:make"]
    done = gputune(*words, "-o", "p.yaml", env=dict(told) | {"PYTHONPATH": ""}, cwd=tmp_path)
    written = [path.read_text() for path in tmp_path.rglob("*.yaml")] + [
        path.read_text() for path in tmp_path.rglob("last-errors.json")
    ]
    assert written, done.stderr
    assert "raised OSError: xxx" in "".join(written)
    assert [tells(text) for text in written] == [[] for _ in written]


@pytest.mark.slow
def test_a_bug_report_tells_nobody_who_and_where(told: Mapping[str, str], tmp_path: Path) -> None:
    done = gputune("bug-report", "report.md", env=told, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.md").read_text() == done.stdout
    assert tells(done.stdout) == []
    assert "~/lib:/usr/lib" in done.stdout
    assert not any(name in done.stdout for name in NAMES), "a name may tell, too"


@pytest.mark.real
def test_the_kernel_s_host_name_and_the_home_in_passwd_are_known_without_variables(
    told: Mapping[str, str], tmp_path: Path
) -> None:
    """As in a container of a job that starts with an empty environment."""
    home = tmp_path / "srv" / USER
    home.mkdir(parents=True)
    (tmp_path / "passwd").write_text(f"{USER}:x:0:0::{home}:/bin/sh\n")
    empty = {name: value for name, value in told.items() if name in ("PATH", "PYTHONPATH", "PYTHONSAFEPATH")}
    words = [sys.executable, "-m", "gputune", "check", "--json", "--only", "unknown_uid,injection"]
    script = (
        f"hostname {HOST} && mount --bind {tmp_path}/passwd /etc/passwd || exit 99; cd {home};"
        f" LD_LIBRARY_PATH={home}:/net/{HOST}/lib exec {shlex.join(words)}"
    )
    done = command(["unshare", "-m", "-u", "sh", "-c", script], empty)
    if done.returncode == 99 or done.stderr.startswith("unshare:"):
        pytest.skip(f"no private mounts here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    assert tells(done.stdout) == []
    found = json.loads(done.stdout)
    assert found["facts"]["environment"] == {"LD_LIBRARY_PATH": "~:/net/HOST/lib"}
    assert [one["message"] for one in found["findings"] if one["check"] == "unknown_uid"] == ["user USER (0)"]
