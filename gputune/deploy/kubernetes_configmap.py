"""A profile as a Kubernetes ConfigMap, for pods that are to apply it without measuring."""

from gputune.deploy import manifest
from gputune.errors import UsageError

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


def text(profile: str, name: str, namespace: str | None) -> str:
    """The manifest that holds `profile`, a profile file's text, unchanged. Raises UsageError if it does not fit."""
    if (size := len(profile.encode())) > MOST_BYTES:
        raise UsageError(
            f"the profile takes {size} bytes, and a ConfigMap holds at most {MOST_BYTES}",
            "put it into the image, or measure less, as with fewer --shapes",
        )
    mount = MOUNT.strip().format(folder=FOLDER, file=FILE, name=name)
    comment = COMMENT.strip() + "\n" + "\n".join(f"  {line}" for line in mount.splitlines())
    metadata = manifest.metadata(name, namespace)
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FILE: profile}}
    return manifest.text(comment, data)
