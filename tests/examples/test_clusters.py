"""What the examples give to clusters, held against the clusters' own rules. tests/slurm runs the job."""

import subprocess
import sys
from pathlib import Path

import pytest
from linted import linted
from manifests import valid
from printed import EXAMPLES

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("name", ["job.sh", "entrypoint.sh"])
def test_what_slurm_runs_passes_shellcheck(name):
    linted((EXAMPLES / "slurm" / name).read_text())


def test_the_job_is_one_that_kubernetes_takes_and_runs_the_image_s_own_file():
    job = valid((EXAMPLES / "kubernetes" / "job.yaml").read_text())
    dockerfile = EXAMPLES / "kubernetes" / "Dockerfile"
    [container] = job["spec"]["template"]["spec"]["containers"]
    [copied, folder] = dockerfile.read_text().splitlines()[-1].split()[1:]
    assert container["command"][:4] == ["gputune", "apply", "/gputune/profile.yaml", "--"]
    assert container["command"][5] == f"{folder}{copied}"
    assert (EXAMPLES / copied).is_file()
    assert f"-t {container['image']} " in dockerfile.read_text()


def test_the_image_passes_hadolint():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, EXAMPLES / "kubernetes" / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
