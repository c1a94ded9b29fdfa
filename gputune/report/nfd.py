"""What a check found as labels of a Kubernetes node, in a file for the local source of node-feature-discovery.

Its worker reads every file of its folder whose name does not begin with a dot, a line NAME=VALUE a label. Labels are
what schedulers select on, so what changes while programs come and go is none: it would have each node rewritten all the
time. What NVIDIA's gpu-feature-discovery tells (count, memory, driver, MIG) is not told again, but for the GPU's name,
which clusters without it need as well.

Source: node-feature-discovery, source/local; Kubernetes, Labels and Selectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gputune.checks import Finding, Severity, momentary, names
from gputune.facts import Facts
from gputune.profile import fingerprint, places
from gputune.version import __version__

PREFIX = "gputune.dev/"
"""A namespace of gputune's own, which no other labels are taken for. node-feature-discovery refuses kubernetes.io's."""

MOST = 63
"""Characters in a label's name and in its value."""

WORST_FIRST: tuple[Severity, ...] = ("ERROR", "WARNING", "UNKNOWN", "OK", "NOT_APPLICABLE")


def text(facts: Facts, findings: Sequence[Finding]) -> str:
    """The file: of the checks that were asked, and no others."""
    asked = {finding.check for finding in findings}
    lines = [f"{PREFIX}{name}={value}" for name, value in labels(facts, findings).items()]
    return "\n".join([f"# gputune {__version__}: {len(asked)} of {len(names())} checks asked", *lines, ""])


def labels(facts: Facts, findings: Sequence[Finding]) -> dict[str, str]:
    """Name, without the prefix, to value.

    `status` is the worst of what was asked: ok, warning, error or unknown, and missing where all is not applicable;
    each check with a warning or an error has a label of its own. Nodes with the same `profile` can share one.
    """
    return {**_of_machine(facts), **_of_checks(findings)}


def _of_machine(facts: Facts) -> dict[str, str]:
    here = fingerprint(facts, "cuda:0" if facts.device_gpu("cuda:0") else "cpu")
    names_of_gpus = {gpu.name for gpu in facts.gpus}
    told = {
        "gpu": names_of_gpus.pop() if len(names_of_gpus) == 1 else "mixed" if names_of_gpus else "",
        "torch": facts.libraries.torch or "",
        "version": __version__,
    }
    name, digest = places.name_of(here).removesuffix(".yaml").rsplit("-", 1)
    told["profile"] = f"{name[: MOST - len(digest) - 1]}-{digest}"
    return {name: value(said) for name, said in told.items() if value(said)}


def _of_checks(findings: Sequence[Finding]) -> dict[str, str]:
    passing = momentary()
    found = worst((finding.check, finding.severity) for finding in findings if finding.check not in passing)
    if not found:
        return {}
    status = min(found.values(), key=WORST_FIRST.index)
    if status == "NOT_APPLICABLE":  # nothing was looked at, which is not health
        return {}
    wrong = {f"check.{check}": one.lower() for check, one in found.items() if one in ("ERROR", "WARNING")}
    return {"status": status.lower(), **wrong}


def worst(pairs: Iterable[tuple[str, Severity]]) -> dict[str, Severity]:
    """Of each name its worst severity, in the order of the names."""
    found: dict[str, Severity] = {}
    for name, severity in pairs:
        found[name] = min(found.get(name, severity), severity, key=WORST_FIRST.index)
    return found


def value(text: str) -> str:
    """What a label's value may hold, as much of the text as fits: `NVIDIA-TITAN-X-(Pascal)` is `NVIDIA-TITAN-X-Pascal`."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:MOST].rstrip("-._")
