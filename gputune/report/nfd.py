"""The result of a check as labels of a Kubernetes node, in a file for node-feature-discovery's local source.

node-feature-discovery reads every file in its folder whose name does not begin with a dot; each line NAME=VALUE is a
label. Schedulers select nodes by labels, so checks whose answer changes as programs come and go give none: the nodes
would be rewritten all the time. Of what NVIDIA's gpu-feature-discovery provides (count, memory, driver, MIG) only the
GPU's name is repeated, for clusters without it.

Source: node-feature-discovery, source/local; Kubernetes, Labels and Selectors.
"""

import re
from collections.abc import Sequence

from gputune.checks import Finding, momentary, names
from gputune.facts import Facts
from gputune.profile import fingerprint, places
from gputune.report.severities import WORST_FIRST, worst
from gputune.version import __version__

PREFIX = "gputune.dev/"
"""gputune's own namespace. node-feature-discovery rejects kubernetes.io's."""
MOST = 63
"""The most characters that a label's name, and its value, may have."""


def text(facts: Facts, findings: Sequence[Finding]) -> str:
    asked = {finding.check for finding in findings}
    lines = [f"{PREFIX}{name}={value}" for name, value in labels(facts, findings).items()]
    return "\n".join([f"# gputune {__version__}: {len(asked)} of {len(names())} checks asked", *lines, ""])


def labels(facts: Facts, findings: Sequence[Finding]) -> dict[str, str]:
    """The labels' values by name, without the prefix.

    `status` is the worst severity found: ok, warning, error or unknown; it is missing if nothing is applicable. Each
    check with a warning or an error has a label of its own. Nodes with the same `profile` label can share a profile.
    """
    identity = fingerprint(facts, "cuda:0" if facts.device_gpu("cuda:0") else "cpu")
    gpus = {gpu.name for gpu in facts.gpus}
    texts = {
        "gpu": gpus.pop() if len(gpus) == 1 else "mixed" if gpus else "",
        "torch": facts.libraries.torch or "",
        "version": __version__,
    }
    name, digest = places.file_name(identity).removesuffix(".yaml").rsplit("-", 1)
    texts["profile"] = f"{name[: MOST - len(digest) - 1]}-{digest}"
    machine = {name: value(text) for name, text in texts.items() if value(text)}
    return {**machine, **_health(findings)}


def _health(findings: Sequence[Finding]) -> dict[str, str]:
    passing = momentary()
    severities = worst((finding.check, finding.severity) for finding in findings if finding.check not in passing)
    if not severities:
        return {}
    status = min(severities.values(), key=WORST_FIRST.index)
    if status == "NOT_APPLICABLE":  # nothing was examined, which does not make the node healthy
        return {}
    wrong = {f"check.{check}": one.lower() for check, one in severities.items() if one in ("ERROR", "WARNING")}
    return {"status": status.lower(), **wrong}


def value(text: str) -> str:
    """The text as a label's value: `NVIDIA TITAN X (Pascal)` becomes `NVIDIA-TITAN-X-Pascal`, cut to the limit."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:MOST].rstrip("-._")
