"""A Kubernetes DaemonSet that checks its nodes again and again, and leaves labels and metrics for others to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gputune.deploy import manifest, node_checks

FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"
"""Where the worker of node-feature-discovery reads, unless its chart was told otherwise."""

TEXTFILES = "/var/lib/node_exporter/textfile_collector"
"""What node_exporter is to be started with: --collector.textfile.directory."""

INTERVAL_SECONDS = 300

DEADLINE_SECONDS = 120
"""A driver that is ill may never answer."""

LOOP = """\
trap 'kill -s TERM -- -$! 2>/dev/null || kill $! 2>/dev/null; wait; exit 0' TERM INT
while :; do
  timeout -k 5 {deadline} {check} &
  wait $!
  sleep {seconds} &
  wait $!
done
"""
"""A check that finds something, or fails, ends with a code that nobody asks for. SIGTERM ends the sleep or the check at once:
timeout leads a group, in which the check hears of it even where timeout is only about to start it."""

COMMENT = f"""
Checks the GPUs and the driver of every GPU node each {INTERVAL_SECONDS} seconds, and only reports: kubectl apply -f FILE
Labels gputune.dev/... by way of node-feature-discovery, metrics gputune_... by way of node_exporter
(--collector.textfile.directory={TEXTFILES}), and what to do about it: kubectl logs.
It is privileged, as gpu-feature-discovery is: it asks for no GPU and is to see all, and writes into two folders of the node.
What was written stays on a node when the DaemonSet is gone: remove the two files there, gputune.features and gputune.prom.
The namespace has to allow that (label pod-security.kubernetes.io/enforce=privileged). Where NVIDIA's runtime is not the
nodes' default, name its class with --runtime-class nvidia.
"""

GPU_NODE = ("feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present")
"""node-feature-discovery sets the first where it labels PCI devices by vendor; the second is gpu-feature-discovery's, or yours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    name: str
    namespace: str | None = None
    image: str
    runtime_class: str | None = None


def text(daemon: DaemonSet) -> str:
    named = manifest.metadata(daemon.name, daemon.namespace)
    spec = {
        "selector": {"matchLabels": named["labels"]},
        "template": {"metadata": {"labels": named["labels"]}, "spec": _pod(daemon)},
    }
    return manifest.text(COMMENT, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": named, "spec": spec})


def loop(features: str = FEATURES, textfiles: str = TEXTFILES) -> str:
    """The script of the container, for sh."""
    check = f"gputune check --only {','.join(node_checks.NAMES)} --nfd {features} --prometheus {textfiles}"
    return LOOP.format(check=check, seconds=INTERVAL_SECONDS, deadline=DEADLINE_SECONDS)


def _pod(daemon: DaemonSet) -> dict[str, Any]:
    present = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["true"]}]} for key in GPU_NODE]
    return manifest.pod(
        daemon.runtime_class,
        tolerations=manifest.TOLERATIONS,
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": present}}},
        containers=[_container(daemon)],
        volumes=[
            *({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in _folders()),
            manifest.TMP,
        ],
    )


def _folders() -> tuple[tuple[str, str], ...]:
    return (("features", FEATURES), ("textfiles", TEXTFILES))


def _container(daemon: DaemonSet) -> dict[str, Any]:
    return {
        "name": "check",
        "image": daemon.image,
        "command": ["sh", "-c", loop()],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "HOME", "value": "/tmp"}],
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {"privileged": True, "runAsUser": 0, "runAsGroup": 0, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            *({"name": name, "mountPath": path} for name, path in _folders()),
            manifest.TMP_MOUNT,
        ],
    }
