"""Kubernetes manifests as text: a comment, and YAML that every parser reads as the same data; and the ConfigMap."""

import re
from typing import Any

from gputune.errors import UsageError

USER_ID = 65532
"""The image's user, by number: runAsNonRoot cannot verify a name."""
USER = {"runAsNonRoot": True, "runAsUser": USER_ID, "runAsGroup": USER_ID, "fsGroup": USER_ID}
TMP = {"name": "tmp", "emptyDir": {}}
TMP_MOUNT = {"name": "tmp", "mountPath": "/tmp"}
"""A writable /tmp beside the read-only root file system."""
GPU = "nvidia.com/gpu"
"""The resource that NVIDIA's device plugin offers, and the usual taint of GPU nodes."""
TOLERATIONS = [{"key": GPU, "operator": "Exists"}]
FILE = "profile.yaml"
FOLDER = "/etc/gputune"
MOST_BYTES = 1 << 20
"""The most that all values of a ConfigMap may take: MaxSecretSize, by ValidateConfigMap in Kubernetes' source."""

COMMENT = """
A profile for pods on nodes like the one that was measured. Apply it with: kubectl apply --server-side -f FILE
(Otherwise kubectl keeps a second copy in an annotation, in which a large profile does not fit.)
In the pod, whose image has `gputune apply auto --` before the command, as its entrypoint or in the container's command:
"""

MOUNT = """
spec:
  containers:
    - name: main
      env:
        - name: GPUTUNE_PROFILE
          value: {folder}/{file}
      volumeMounts:
        - name: profile
          mountPath: {folder}
          readOnly: true
  volumes:
    - name: profile
      configMap:
        name: {name}
"""

_UNITS = {"Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9./_-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Words that some YAML parser reads as a boolean or null. Whatever begins with a digit or a sign is quoted anyway."""


def text(comment: str, manifest: dict[str, Any]) -> str:
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.strip().splitlines())
    return head + dump(manifest)


def dump(data: Any) -> str:
    """YAML in ASCII, in the order of the data. Lines are a literal block; text other than a plain word is quoted."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(str, _represent)
    written: str = yaml.dump(data, Dumper=Dumper, sort_keys=False, width=10**9)
    return written


def metadata(name: str, namespace: str | None) -> dict[str, Any]:
    """An object's metadata. Without a namespace, kubectl chooses its current one."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "gputune"}
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}


def memory_bytes(amount: str) -> int:
    """Bytes of an amount such as `16Gi`. Raises ValueError."""
    match = re.fullmatch(r"([1-9][0-9]{0,6})(Mi|Gi|Ti)", amount)
    if not match:
        raise ValueError(amount)
    return int(match[1]) * _UNITS[match[2]]


def literally(word: str) -> str:
    """A word of a command, escaped: Kubernetes replaces $(NAME) by a variable's value, and $$ by $."""
    return word.replace("$", "$$")


def pod(runtime_class: str | None, **spec: Any) -> dict[str, Any]:
    """A pod's specification, without a token for the API server, which gputune never calls."""
    runtime = {"runtimeClassName": runtime_class} if runtime_class else {}
    return {**runtime, "automountServiceAccountToken": False, **spec}


def configmap(profile: str, name: str, namespace: str | None) -> str:
    """The manifest that holds `profile`, a profile file's text, unchanged. Raises UsageError if it does not fit."""
    if (size := len(profile.encode())) > MOST_BYTES:
        raise UsageError(
            f"the profile takes {size} bytes, and a ConfigMap holds at most {MOST_BYTES}",
            "put it into the image, or measure less, as with fewer --shapes",
        )
    mount = MOUNT.strip().format(folder=FOLDER, file=FILE, name=name)
    comment = COMMENT.strip() + "\n" + "\n".join(f"  {line}" for line in mount.splitlines())
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, namespace), "data": {FILE: profile}}
    return text(comment, data)


def _represent(dumper: Any, value: str) -> Any:
    word = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    style = None if word else "|" if _literal(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _literal(value: str) -> bool:
    lines = value.split("\n")
    plain = all(line.isascii() and line.isprintable() and line == line.rstrip() for line in lines)
    return plain and len(lines) > 2 and not lines[-1] and bool(lines[-2]) and value[0] not in " \n"
