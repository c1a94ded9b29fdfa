"""A Kubernetes Job that measures its node in an init container and runs a command with that profile."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gputune.deploy import manifest, node_checks
from gputune.deploy.docker import amount, shm_mebibytes

PROFILE = "/gputune/profile.yaml"

USAGE = """
Measures its node, which takes one to three minutes, and runs the command with that profile. To use it:
kubectl apply -f FILE
CPUs and memory are limited to what is requested, so that gputune counts what the pod really has.
The root file system is read-only: mount a volume for results. /tmp is deleted with the pod.
"""
LENIENT = "If the probe fails, the command runs without a profile; with --strict the Job fails instead."
STRICT = (
    "If the driver or a GPU does not answer, the probe fails, or its profile cannot be read, the command does not run\n"
    "(gputune apply exits with 78)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    name: str
    namespace: str | None = None
    image: str
    runtime_class: str | None = None
    gpus: int
    cpus: int
    memory: str
    """In Kubernetes' notation: 16Gi."""
    strict: bool = False
    command: Sequence[str]


def text(job: Job) -> str:
    """Raises ValueError where `memory` is not a valid size."""
    metadata = manifest.metadata(job.name, job.namespace)
    spec = {
        "backoffLimit": 0,  # a training that failed would fail again
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },  # an eviction or a drained node does not count as a failure
        "template": {"metadata": {"labels": metadata["labels"]}, "spec": _pod(job)},
    }
    comment = f"{USAGE.strip()}\n{STRICT if job.strict else LENIENT}"
    return manifest.text(comment, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def _pod(job: Job) -> dict[str, Any]:
    strict = ["--strict"] if job.strict else []
    command = ["gputune", "apply", *strict, PROFILE, "--", *map(manifest.literally, job.command)]
    shm = shm_mebibytes(job.cpus, manifest.memory_bytes(job.memory))
    memory = {"medium": "Memory", "sizeLimit": amount(shm, "Gi", "Mi")}
    return manifest.pod(
        job.runtime_class,
        restartPolicy="Never",
        shareProcessNamespace=True,  # as process 1 the command would ignore SIGTERM unless it handles it
        securityContext={**manifest.USER, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"tolerations": manifest.TOLERATIONS} if job.gpus else {}),
        initContainers=[_container(job, "probe", _probe(job))],
        containers=[_container(job, "main", command)],
        volumes=[{"name": "gputune", "emptyDir": {}}, {"name": "shm", "emptyDir": memory}, manifest.TMP],
    )


def _probe(job: Job) -> list[str]:
    command = ["gputune", "probe", "--device", "all" if job.gpus else "cpu", "-o", PROFILE]
    if job.strict and job.gpus:
        names = ",".join([*node_checks.MUST_TELL, "expected_gpus"])
        gate = f"gputune check --only {names} --expect-gpus {job.gpus} --fail-on unknown {node_checks.PATIENT}"
        return ["sh", "-c", f"{gate} && exec {' '.join(command)}"]
    if job.strict:
        return command
    otherwise = "echo 'gputune: the probe failed; the command runs without a profile' >&2"
    return ["sh", "-c", f"{' '.join(command)} || {otherwise}"]


def _container(job: Job, name: str, command: Sequence[str]) -> dict[str, Any]:
    """A container. Both have equal resources, because a profile holds for those that it was measured with."""
    size = {"cpu": str(job.cpus), "memory": job.memory}
    # Where NVIDIA's runtime is the default, the image's own value would show all GPUs of the node.
    hidden = [] if job.gpus else [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    return {
        "name": name,
        "image": job.image,
        "command": list(command),
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "USER", "value": "user"}, *hidden],
        "resources": {"requests": size, "limits": {**size, **({manifest.GPU: job.gpus} if job.gpus else {})}},
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "gputune", "mountPath": "/gputune"},
            {"name": "shm", "mountPath": "/dev/shm"},
            manifest.TMP_MOUNT,
        ],
    }
