"""A Kubernetes DaemonSet that checks its nodes periodically and writes labels and metrics."""

from typing import Any

from gputune.deploy import manifest, node_checks

FEATURES = "/etc/kubernetes/node-feature-discovery/features.d"
"""The folder that node-feature-discovery reads by default."""
TEXTFILES = "/var/lib/node_exporter/textfile_collector"
"""The folder to start node_exporter with: --collector.textfile.directory."""
INTERVAL_SECONDS = 300
DEADLINE_SECONDS = 120
"""A broken driver may never answer."""
HEALTHY = "/tmp/healthy"
"""There while the driver and all GPUs of the node answer, for the readiness probe."""

LOOP = """\
trap 'kill -s TERM -- -$! 2>/dev/null || kill $! 2>/dev/null; wait; exit 0' TERM INT
while :; do
  timeout -k 5 {deadline} {check} &
  wait $!
  timeout -k 5 {deadline} {gate} >/dev/null 2>&1 &
  if wait $!; then touch {healthy}; else rm -f {healthy}; fi
  sleep {seconds} &
  wait $!
done
"""
"""The exit code of the first check is ignored; that of the second says whether the pod is ready. SIGTERM ends the sleep
or a check at once: timeout leads a process group, so that the signal reaches the check even while timeout is still
starting it."""

COMMENT = f"""
Checks the GPUs and the driver of every GPU node every {INTERVAL_SECONDS} seconds and reports. To use it:
kubectl apply -f FILE
Labels gputune.dev/... go through node-feature-discovery, and metrics gputune_... through node_exporter
(--collector.textfile.directory={TEXTFILES}). kubectl logs shows the findings with their remedies.
A pod is not ready while its node's driver or a GPU does not answer, or is broken.
It is privileged, as gpu-feature-discovery is: it must see all GPUs without requesting any, and it writes into two
folders of the node. The namespace has to allow that (label pod-security.kubernetes.io/enforce=privileged).
The files gputune.features and gputune.prom stay on a node when the DaemonSet is deleted: remove them by hand.
Where NVIDIA's runtime is not the nodes' default, name its RuntimeClass: --runtime-class nvidia
"""

GPU_NODE = ("feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present")
"""Labels of a node with GPUs: node-feature-discovery's, by PCI vendor, and gpu-feature-discovery's."""
_FOLDERS = (("features", FEATURES), ("textfiles", TEXTFILES))


def text(name: str, namespace: str | None, image: str, runtime_class: str | None) -> str:
    metadata = manifest.metadata(name, namespace)
    spec = {
        "selector": {"matchLabels": metadata["labels"]},
        "template": {"metadata": {"labels": metadata["labels"]}, "spec": _pod(image, runtime_class)},
    }
    return manifest.text(COMMENT, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec})


def loop(features: str = FEATURES, textfiles: str = TEXTFILES) -> str:
    names, must_tell = ",".join(node_checks.NAMES), ",".join(node_checks.MUST_TELL)
    check = f"gputune check {node_checks.PATIENT} --only {names} --nfd {features} --prometheus {textfiles}"
    gate = f"gputune check {node_checks.PATIENT} --only {must_tell} --fail-on unknown"
    return LOOP.format(check=check, gate=gate, seconds=INTERVAL_SECONDS, deadline=DEADLINE_SECONDS, healthy=HEALTHY)


def _pod(image: str, runtime_class: str | None) -> dict[str, Any]:
    present = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["true"]}]} for key in GPU_NODE]
    return manifest.pod(
        runtime_class,
        tolerations=manifest.TOLERATIONS,
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": present}}},
        containers=[_container(image)],
        volumes=[
            *({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in _FOLDERS),
            manifest.TMP,
        ],
    )


def _container(image: str) -> dict[str, Any]:
    return {
        "name": "check",
        "image": image,
        "command": ["sh", "-c", loop()],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "HOME", "value": "/tmp"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", HEALTHY]}, "periodSeconds": 60},
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {"privileged": True, "runAsUser": 0, "runAsGroup": 0, "readOnlyRootFilesystem": True},
        "volumeMounts": [*({"name": name, "mountPath": path} for name, path in _FOLDERS), manifest.TMP_MOUNT],
    }
