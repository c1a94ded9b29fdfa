"""Everything at once that a cluster may do to a container: quota, memory, little shared memory, a read-only root, a
user without a name or a home, no network, no GPU.
"""

import json
from dataclasses import replace

import pytest
from containers.limits import LIMITS, USER

import gputune
from gputune.advice import Choice
from gputune.profile import save

pytestmark = pytest.mark.containers

IN_TORCH = """
import json, torch
print(json.dumps([torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark, torch.get_num_threads()]))
"""
CHOSEN = {"matmul_precision": "tf32", "cudnn_benchmark": True, "omp_threads": 1}


def limited(docker, image, *command, options=()):
    return docker.run(image, *command, options=[*LIMITS, *options])


@pytest.fixture(scope="module")
def measured(docker, image, tmp_path_factory):
    """The profile that a quick probe printed."""
    result = limited(docker, image, "gputune", "probe", "--budget", "quick", "-o", "-")
    assert result.returncode == 0, result.stderr
    assert "not kept for gputune apply auto" in result.stderr  # for lack of a place, which is no fault of the probe's
    path = tmp_path_factory.mktemp("measured") / "profile.yaml"
    path.write_text(result.stdout)
    return gputune.load(path)


def test_a_check_reports_what_is_limited(docker, image):
    result = limited(docker, image, "gputune", "check", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    found = {one["check"]: one for one in answer["findings"]}
    cpu, memory = answer["facts"]["cpu"], answer["facts"]["memory"]
    assert (cpu["quota"], cpu["budget"]) == (1.5, 1)
    assert (memory["limit_bytes"], memory["shm_bytes"]) == (2 << 30, 64 << 20)
    assert answer["facts"]["container"]["kind"] == "docker"
    assert answer["facts"]["process"]["uid"] == USER[0]
    assert answer["facts"]["process"]["user"] is None
    if cpu["affinity_count"] > 1:
        assert found["cpu_quota"]["severity"] == "WARNING"
        assert found["cpu_quota"]["message"].startswith("the quota allows 1.5 CPUs")
    assert found["shm_size"]["severity"] == "WARNING"
    assert found["shm_size"]["message"].startswith("/dev/shm holds 64 MiB")
    assert found["unknown_uid"]["severity"] == "OK"  # this torch can do without a name
    assert found["gpu_absent"]["severity"] == "NOT_APPLICABLE"
    assert not [one for one in answer["findings"] if one["severity"] in ("ERROR", "UNKNOWN")]


def test_a_quick_probe_measures_and_says_on_how_many_cpus(measured):
    assert measured.fingerprint.cpu_budget == 1
    benches = {row.bench for row in measured.measurements}
    assert "precision" in benches
    assert measured.settings["omp_threads"].value == 1
    gaps = {gap.fact: gap.reason for gap in measured.gaps if gap.fact.startswith("bench.")}
    for_time = ("not measured in this budget", "the budget ran out before")
    assert all(reason.startswith(for_time) for reason in gaps.values()), "a busy machine takes nothing but time"
    assert benches | {fact.removeprefix("bench.") for fact in gaps} >= {"precision", "matmul_alignment"}


def test_without_a_tmp_workers_are_not_waited_for(docker, image):
    result = limited(docker, image, "gputune", "probe", "--only", "dataloader", "-o", "-")
    assert (result.returncode, result.stdout) == (3, "")
    fault = "workers need a folder for temporary files, and there is none: set TMPDIR, or docker run --tmpfs /tmp"
    assert fault in result.stderr


def test_what_a_mounted_profile_chooses_holds_in_torch_and_nothing_is_said(docker, image, measured, tmp_path):
    chosen = measured.settings | {name: Choice(value=value, reason="for this test") for name, value in CHOSEN.items()}
    save(replace(measured, settings=chosen), tmp_path / "profile.yaml")
    tmp_path.chmod(0o755)
    options = [f"--volume={tmp_path}:/profiles:ro", "--env=GPUTUNE_PROFILE=/profiles/profile.yaml"]
    result = limited(docker, image, "python3", "-c", IN_TORCH, options=[*options, "--env=PYTHONWARNINGS=ignore"])
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == ["high", True, 1]
    assert result.stderr == ""


def test_without_a_home(docker, image):
    """Docker gives every user a HOME, others do not."""
    words = ["-u", "HOME", "gputune", "apply", "auto", "--", "sh", "-c", 'echo "home: $HOME"']
    result = limited(docker, image, *words, options=["--entrypoint=env"])
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (0, "home: \n", 1)
    missing = limited(docker, image, *words, options=["--entrypoint=env", "--env=GPUTUNE_PROBE=missing"])
    assert (missing.returncode, missing.stdout) == (0, "home: \n")
    assert "gputune: not probed: there is no folder for profiles, since HOME is not set" in missing.stderr


def test_where_nothing_can_be_kept_nothing_is_measured_and_the_command_runs(docker, image):
    result = limited(docker, image, "echo", "out", options=["--env=GPUTUNE_PROBE=missing"])
    assert (result.returncode, result.stdout) == (0, "out\n")
    assert "gputune: not probed: /.cache/gputune: Read-only file system; set XDG_CACHE_HOME" in result.stderr
