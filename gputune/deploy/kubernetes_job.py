"""A Kubernetes Job that measures its node in an init container, and runs a command with what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gputune.deploy import manifest, shared_memory

PROFILE = "/gputune/profile.yaml"

USAGE = """
Measures its node, which takes one to three minutes, and runs the command with what was found: kubectl apply -f FILE
CPUs and memory are limited to what is asked for, so that gputune counts what the pod really has.
The root file system is read-only: mount a volume of yours for what is to stay. /tmp goes with the pod.
"""
OPEN = "Where the probe fails, the command runs without a profile; --strict makes that a failure of the Job."
STRICT = (
    "Where the probe fails, or the profile cannot be read, the command does not run (gputune apply then exits with 78)."
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
    """As Kubernetes writes it: 16Gi."""
    strict: bool = False
    command: Sequence[str]


def text(job: Job) -> str:
    """Raises ValueError for a `memory` that is none."""
    named = manifest.metadata(job.name, job.namespace)
    spec = {
        "backoffLimit": 0,  # a training that fails would fail again
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },  # but a drained node is no failure of it
        "template": {"metadata": {"labels": named["labels"]}, "spec": _pod(job)},
    }
    comment = f"{USAGE.strip()}\n{STRICT if job.strict else OPEN}"
    return manifest.text(comment, {"apiVersion": "batch/v1", "kind": "Job", "metadata": named, "spec": spec})


def _pod(job: Job) -> dict[str, Any]:
    strict = ["--strict"] if job.strict else []
    shm = shared_memory.mebibytes(job.cpus, manifest.memory_bytes(job.memory))
    memory = {"medium": "Memory", "sizeLimit": shared_memory.amount(shm, "Gi", "Mi")}
    return manifest.pod(
        job.runtime_class,
        restartPolicy="Never",
        shareProcessNamespace=True,  # the command is not process 1, which ignores SIGTERM unless it asks for it
        securityContext={**manifest.USER, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"tolerations": manifest.TOLERATIONS} if job.gpus else {}),
        initContainers=[_container(job, "probe", _probe(job))],
        containers=[
            _container(job, "main", ["gputune", "apply", *strict, PROFILE, "--", *map(manifest.literally, job.command)])
        ],
        volumes=[{"name": "gputune", "emptyDir": {}}, {"name": "shm", "emptyDir": memory}, manifest.TMP],
    )


def _probe(job: Job) -> list[str]:
    command = ["gputune", "probe", "--device", "all" if job.gpus else "cpu", "-o", PROFILE]
    if job.strict:
        return command
    return ["sh", "-c", f"{' '.join(command)} || echo 'gputune: not probed; the command runs without a profile' >&2"]


def _container(job: Job, name: str, command: Sequence[str]) -> dict[str, Any]:
    """Both alike: what is measured holds for the same CPUs, memory and GPUs, which the pod gets once and not twice."""
    size = {"cpu": str(job.cpus), "memory": job.memory}
    # What the image says of GPUs would show all of the node's, where NVIDIA's runtime is the default.
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
