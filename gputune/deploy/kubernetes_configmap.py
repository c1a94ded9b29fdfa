"""A profile as a Kubernetes ConfigMap, for pods that are to apply it without measuring."""

from __future__ import annotations

from gputune.deploy import manifest

FILE = "profile.yaml"
FOLDER = "/etc/gputune"

COMMENT = """
A profile for pods of nodes like the one that was measured. Otherwise than on the server's side kubectl would keep a second
copy in an annotation, where a large profile has no room: kubectl apply --server-side -f FILE
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
    """`profile` is the text of a profile's file, which the ConfigMap holds to the last character."""
    mount = MOUNT.strip().format(folder=FOLDER, file=FILE, name=name)
    comment = COMMENT.strip() + "\n" + "\n".join(f"  {line}" for line in mount.splitlines())
    data = {"data": {FILE: profile}}
    return manifest.text(
        comment, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": manifest.metadata(name, namespace), **data}
    )
