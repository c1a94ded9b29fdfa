"""A Kubernetes manifest held against the schemas of three releases, and against what those leave open: values of a
closed list, and names that must be met elsewhere in it.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

VERSIONS = ("1.35", "1.36", "1.37")

_VALUES = {
    (None, "restartPolicy"): {"Always", "OnFailure", "Never"},
    (None, "imagePullPolicy"): {"Always", "IfNotPresent", "Never"},
    (None, "concurrencyPolicy"): {"Allow", "Forbid", "Replace"},
    ("emptyDir", "medium"): {"", "Memory"},
    ("hostPath", "type"): {
        "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice",
    },
    ("seccompProfile", "type"): {"RuntimeDefault", "Localhost", "Unconfined"},
    ("matchExpressions", "operator"): {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"},
    ("tolerations", "operator"): {"Exists", "Equal"},
    ("tolerations", "effect"): {"NoSchedule", "PreferNoSchedule", "NoExecute"},
    ("rules", "action"): {"Ignore", "FailJob", "FailIndex", "Count"},
    ("onPodConditions", "type"): {"DisruptionTarget", "ConfigIssue"},
    ("onPodConditions", "status"): {"True", "False", "Unknown"},
}  # fmt: skip
"""(what it stands in, key) to the values that the API server takes."""

_QUANTITY = re.compile(r"[1-9][0-9]*(m|Mi|Gi|Ti)?")


def valid(text: str) -> dict[str, Any]:
    """The one manifest of a text, which the API server would take."""
    import kubernetes_validate  # of the extra `cluster`, which the tests that are not about clusters do without

    manifest: dict[str, Any] = yaml.safe_load(text)
    for version in VERSIONS:
        assert kubernetes_validate.validate(manifest, version, strict=True) == version
    for parent, key, value in _pairs(manifest):
        if isinstance(value, str):
            known = _VALUES.get((parent, key)) or _VALUES.get((None, key))
            assert not known or value in known, (parent, key, value)
        if parent in ("requests", "limits"):
            assert _QUANTITY.fullmatch(str(value)), (key, value)
        if parent == "emptyDir" and key == "sizeLimit":
            assert _QUANTITY.fullmatch(value)
    pod = manifest.get("spec", {}).get("template", {}).get("spec")
    if pod:
        _check_pod(pod)
    return manifest


def _check_pod(pod: dict[str, Any]) -> None:
    volumes = [volume["name"] for volume in pod["volumes"]]
    assert len(volumes) == len(set(volumes))
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        mounts = container["volumeMounts"]
        assert {mount["name"] for mount in mounts} <= set(volumes)
        assert len({mount["mountPath"] for mount in mounts}) == len(mounts)
        assert all(isinstance(word, str) for word in container["command"])
        assert all(isinstance(variable["value"], str) for variable in container["env"])


def _pairs(data: Any, parent: str | None = None) -> Iterator[tuple[str | None, str, Any]]:
    """Each key of a mapping with its value, below the nearest key that leads to it."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield parent, key, value
            yield from _pairs(value, key)
    elif isinstance(data, list):
        for value in data:
            yield from _pairs(value, parent)
