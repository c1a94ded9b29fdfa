"""The Job: what the API server makes of it, and what its commands do."""

import re
from dataclasses import replace

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from making import command, environ, on_path, profile, written
from manifests import valid

from gputune.deploy.kubernetes_job import PROFILE, Job, text
from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

pytestmark = pytest.mark.cluster

JOB = Job(
    name="train", image="gputune:1", gpus=2, cpus=8, memory="32Gi", command=["python", "train.py", "--lr", "1e-3"]
)


POD = {
    "restartPolicy": "Never",
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "shareProcessNamespace": True,
    "automountServiceAccountToken": False,
    "securityContext": {
        "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}  # fmt: skip


def pod(job=JOB):
    return valid(text(job))["spec"]["template"]["spec"]


def containers(job=JOB):
    spec = pod(job)
    return spec["initContainers"][0], spec["containers"][0]


def test_it_runs_once_whatever_happens_to_the_node_and_is_as_confined_as_a_pod_can_be():
    manifest, spec = valid(text(JOB)), pod()
    assert (manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"]) == ("batch/v1", "Job", "train")
    assert manifest["spec"]["backoffLimit"] == 0
    [rule] = manifest["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert {name: spec[name] for name in POD} == POD
    for container in containers():
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip


def test_one_container_measures_and_the_other_applies_what_was_measured():
    probe, main = containers()
    assert "gputune probe --device all -o /gputune/profile.yaml" in " ".join(probe["command"])
    assert main["command"] == ["gputune", "apply", PROFILE, "--", "python", "train.py", "--lr", "1e-3"]


def test_both_have_the_same_cpus_memory_and_gpus():
    probe, main = containers()
    assert probe["resources"] == main["resources"] == {
        "requests": {"cpu": "8", "memory": "32Gi"},
        "limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": 2},
    }  # fmt: skip


def test_without_gpus_the_cpu_is_measured():
    job = replace(JOB, gpus=0)
    probe, main = containers(job)
    assert "--device cpu" in " ".join(probe["command"])
    assert "nvidia.com/gpu" not in main["resources"]["limits"]
    assert "tolerations" not in pod(job)


def test_what_is_written_has_a_place():
    spec = pod()
    for container in containers():
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/gputune", "/dev/shm", "/tmp"}
        assert {"name": "HOME", "value": "/tmp"} in container["env"]
    assert all("emptyDir" in volume for volume in spec["volumes"])


@pytest.mark.parametrize(("cpus", "memory", "size"), [(8, "32Gi", "2Gi"), (96, "512Gi", "16Gi"), (96, "1Gi", "512Mi")])
def test_shared_memory_suits_the_cpus_and_leaves_half_of_the_memory(cpus, memory, size):
    [shm] = [volume for volume in pod(replace(JOB, cpus=cpus, memory=memory))["volumes"] if volume["name"] == "shm"]
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": size}


def test_a_class_of_runtime_and_a_namespace_where_they_are_named():
    assert "runtimeClassName" not in pod()
    assert pod(replace(JOB, runtime_class="nvidia"))["runtimeClassName"] == "nvidia"
    assert valid(text(replace(JOB, namespace="team")))["metadata"]["namespace"] == "team"
    assert "namespace" not in valid(text(JOB))["metadata"]


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
@example(["sh", "-c", "echo $$ $(HOME) $$(date) ${A} $"])
def test_the_command_arrives_as_it_was_given(words):
    spec = yaml.safe_load(text(replace(JOB, command=words)))["spec"]["template"]["spec"]
    assert [expanded(word) for word in spec["containers"][0]["command"][4:]] == words


def expanded(word):
    """A word as Kubernetes expands it: $$ is a dollar, $(NAME) a variable's value, and any other dollar stays.

    Source: k8s.io/kubernetes/third_party/forked/golang/expansion.
    """
    return re.sub(r"\$(\$|\([^)]*\))", lambda found: "$" if found[1] == "$" else "a value", word)


def run(words, folder):
    words = [expanded(word).replace(PROFILE, str(folder / "profile.yaml")) for word in words]
    return command(words, environ(PATH=on_path(folder)))


class TestItsCommands:
    def test_a_probe_that_fails_ends_well_and_says_so(self, tmp_path):
        (tmp_path / "profile.yaml").mkdir()
        probe, _ = containers()
        done = run(probe["command"], tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        assert "is a directory" in done.stderr
        assert done.stderr.endswith("gputune: the probe failed; the command runs without a profile\n")

    def test_then_the_command_runs_without_a_profile(self, tmp_path):
        _, main = containers(replace(JOB, command=["sh", "-c", "echo ran; exit 37"]))
        done = run(main["command"], tmp_path)
        assert (done.returncode, done.stdout) == (37, "ran\n")
        assert "running sh unchanged" in done.stderr

    def test_with_a_profile_it_is_applied(self, tmp_path):
        written(tmp_path, profile({"omp_threads": 3}, fingerprint=local_fingerprint(Host())))
        _, main = containers(replace(JOB, command=["sh", "-c", "echo $OMP_NUM_THREADS"]))
        assert run(main["command"], tmp_path).stdout == "3\n"

    def test_strictly_a_failed_probe_fails_and_no_command_runs(self, tmp_path):
        (tmp_path / "profile.yaml").mkdir()
        probe, main = containers(replace(JOB, strict=True, command=["echo", "ran"]))
        assert run(probe["command"], tmp_path).returncode == 2
        done = run(main["command"], tmp_path)
        assert (done.returncode, done.stdout) == (78, "")
